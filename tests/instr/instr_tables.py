"""A module around one line of PTX, for tests that say what is wrong with the line."""

from ptxgen.instr.check import Diagnostic, check

BODY = """\
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<140>;
.reg .b64 %rd<9>;
.reg .u32 %u<9>;
.reg .f32 %f<9>;
.reg .f64 %fd<9>;
.reg .v2 .b32 %v2;
.reg .v4 .f32 %v4;
.shared .align 16 .b8 smem[64];
.local .align 16 .b8 local[64];
here:
"""


def module(line: str, target: str = "sm_100a", version: str = "9.0") -> str:
    """A module with this line in its entry."""
    return f""".version {version}
.target {target}
.address_size 64
.global .align 16 .b8 array[64];
.const .b8 table[64];
.func helper() {{ ret; }}
.visible .entry kernel(.param .u64 pointer, .param .u32 size) {{
{BODY}{line}
ret;
}}
"""


LINE = module("\0").split("\n").index("\0") + 1


def diagnose(line: str, target: str = "sm_100a", version: str = "9.0") -> list[Diagnostic]:
    """What `check` says of a line; every diagnostic must stand at it."""
    found = check(module(line, target, version))
    assert all(each.line == LINE for each in found), found
    return found
