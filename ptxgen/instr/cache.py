"""What is said to the caches: prefetches, eviction policies, discarded lines. PTX ISA 9.7.9.15 to 9.7.9.18."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, immediate, register, source
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.model.targets import ALL
from ptxgen.syntax import Expression, Immediate

_Global = Literal["global"]
#: The state spaces whose variables generic addresses may name.
_GLOBAL = ("global",)
_First = Literal["evict_last", "evict_normal", "evict_first", "evict_unchanged"]
_Second = Literal["evict_first", "evict_unchanged"]


class prefetch(Instruction, section="9.7.9.15", ptx="2.0", targets=ALL):
    """Bring the line of an address into a cache."""

    syntax = "prefetch{.space}.level [a]"
    a: OperandLike = address("space", variables=_GLOBAL, memory="none")
    _: KW_ONLY
    space: Literal["global", "local"] | None = None
    level: Literal["L1", "L2"]


class prefetch_keep(Instruction, opcode="prefetch", section="9.7.9.15", ptx="7.4", targets="sm_80+"):
    """Bring the line of a global address into L2, with an eviction priority."""

    syntax = "prefetch{.space}.priority [a]"
    a: OperandLike = address("space", variables=_GLOBAL, memory="none")
    _: KW_ONLY
    space: _Global | None = None
    priority: Literal["evict_last", "evict_normal"] = modifier("L2::")


class prefetch_valid(Instruction, opcode="prefetch", section="9.7.10.16 (9.4)", ptx="9.4", targets="sm_90+"):
    """Bring 32 bytes of a global address, which must be valid, into L1."""

    syntax = "prefetch{.space}.L1::32B.valid_addr [a]"
    a: OperandLike = address("space", variables=_GLOBAL, memory="none")
    _: KW_ONLY
    space: _Global | None = None


class prefetch_tensormap(Instruction, opcode="prefetch", section="9.7.9.15", ptx="8.0", targets="sm_90+"):
    """Bring a 128-byte tensormap close, ahead of its first use."""

    syntax = "prefetch{.space}.tensormap [a]"
    a: OperandLike = address("space", bits=(32, 64), memory="none")
    _: KW_ONLY
    space: Literal["const", "param"] | None = None


class prefetchu(Instruction, section="9.7.9.15", ptx="2.0", targets=ALL):
    """Bring the line of a generic address into the uniform cache."""

    syntax = "prefetchu.L1 [a]"
    a: OperandLike = address(variables=_GLOBAL, memory="none")


class applypriority(Instruction, section="9.7.9.16", ptx="7.4", targets="sm_80+"):
    """Give 128 bytes of global memory, aligned to as many, the normal priority in L2 again."""

    syntax = "applypriority{.space}.L2::evict_normal [a], size"
    a: OperandLike = address("space", variables=_GLOBAL, memory="none")
    size: OperandLike = immediate(128, 128)
    _: KW_ONLY
    space: _Global | None = None


class discard(Instruction, section="9.7.9.17", ptx="7.4", targets="sm_80+"):
    """Make 128 bytes of global memory, aligned to as many, indeterminate: L2 need not write them back."""

    syntax = "discard{.space}.L2 [a], size"
    a: OperandLike = address("space", variables=_GLOBAL, memory="write")
    size: OperandLike = immediate(128, 128)
    _: KW_ONLY
    space: _Global | None = None


class createpolicy_range(Instruction, opcode="createpolicy.range", section="9.7.9.18", ptx="7.4", targets="sm_80+"):
    """policy = `first` for `primary` bytes from a, `second` for the others of `total` bytes around them."""

    syntax = "createpolicy.range{.space}.first{.second}.b64 policy, [a], primary, total"
    policy: OperandLike = register("u64")
    a: OperandLike = address("space", bits=(32, 64), variables=_GLOBAL, memory="none")
    primary: OperandLike = source("u32")
    total: OperandLike = source("u32")
    _: KW_ONLY
    space: _Global | None = None
    first: _First = modifier("L2::")
    second: _Second | None = modifier("L2::", default=None)

    @rule("range", reads_operands=True)
    def _range(self) -> str | None:
        """The primary range lies in the total."""
        first, whole = self.primary, self.total
        if not (isinstance(first, Immediate | Expression) and isinstance(whole, Immediate | Expression)):
            return None
        # Cut to 32 bits, as the operands are (measured, ptxas 13.5).
        if int(first.evaluate()) % 2**32 <= int(whole.evaluate()) % 2**32:
            return None
        return f"the primary range must not exceed the total, but {first} is more than {whole}"


class createpolicy_fractional(
    Instruction, opcode="createpolicy.fractional", section="9.7.9.18", ptx="7.4", targets="sm_80+"
):
    """policy = `first` for a part of all accesses (1.0 without `fraction`), `second` for the others."""

    syntax = "createpolicy.fractional.first{.second}.b64 policy{, fraction}"
    policy: OperandLike = register("u64")
    fraction: OperandLike = source("f32", float_sums=False, default=None)
    _: KW_ONLY
    first: _First = modifier("L2::")
    second: _Second | None = modifier("L2::", default=None)

    @rule("fraction", reads_operands=True)
    def _fraction(self) -> str | None:
        """More than 0.0, at most 1.0."""
        value = self.fraction
        if not isinstance(value, Immediate | Expression) or 0.0 < value.evaluate() <= 1.0:
            return None
        return f"fraction must be more than 0.0 and at most 1.0, not {value}"


class createpolicy_cvt(Instruction, opcode="createpolicy.cvt", section="9.7.9.18", ptx="7.4", targets="sm_80+"):
    """policy = the access property a of the CUDA API as a policy."""

    syntax = "createpolicy.cvt.L2.b64 policy, a"
    policy: OperandLike = register("u64")
    a: OperandLike = source("u64", sums=False)
