"""CuTe DSL: where each compilation leaves its PTX, which options of `cute.compile` change."""

import ctypes
import functools
import os


def patch(module):
    plain = module.CompileOptions.apply_envar_settings
    library = ctypes.CDLL(None)

    @functools.wraps(plain)
    def apply_envar_settings(self, *arguments, **options):
        self.options[module.KeepPTX].value = True
        result = plain(self, *arguments, **options)
        path = self.full_ptx_path
        if path:
            library.ptxgen_ptx_folder(os.path.abspath(os.path.dirname(path)).encode())
        return result

    module.CompileOptions.apply_envar_settings = apply_envar_settings
