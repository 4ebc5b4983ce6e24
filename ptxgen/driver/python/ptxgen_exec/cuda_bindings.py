"""cuda.bindings has a stripped copy of NVIDIA's runtime: its functions, which Cython exports, are replaced."""

import ctypes


def patch(module):
    library = ctypes.CDLL(None)
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    library.ptxgen_replace_function.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    for function, capsule in getattr(module, "__pyx_capi__", {}).items():
        library.ptxgen_replace_function(pointer(capsule, name(capsule)), function.encode())
