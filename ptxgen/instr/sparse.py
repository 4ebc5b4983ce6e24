"""Structured sparsity in registers: dense vectors to compressed ones with indices, and back. PTX ISA 9.7.10 of 9.4."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import register, vector
from ptxgen.instr.model.operands.compound import repeated
from ptxgen.instr.model.syntax_line import modifier


def _registers(bits: int) -> int:
    """How many 32-bit registers hold so many bits."""
    return -(-bits // 32)


class spcompress(Instruction, section="9.7.10.30 (9.4)", ptx="9.4", targets="sm_107a", results=("mdata", "cdata")):
    """Keep 2 of each 4 elements of `data` in `cdata`; `mdata` gets their indices.

    `spdesc` says which: bits 0-1 are 0 for the greatest, 1 for those of greatest magnitude, 2 for the least, 3 for
    those of least magnitude; bits 2-4 are the type: f16 or u8 (0), bf16 or s8 (1), e5m2, e4m3, e3m2, e2m3.
    """

    syntax = "spcompress.elemsize.idxsize.spfactor.num mdata, cdata, data, spdesc"
    mdata: OperandLike = vector("b32", lambda form: _registers(32 // form.elemsize * form.num * form.idxsize))
    cdata: OperandLike = vector("b32", lambda form: form.num)
    data: OperandLike = vector("b32", lambda form: 2 * form.num, mixed=True)
    spdesc: OperandLike = register("b32", sums=True)
    _: KW_ONLY
    elemsize: Literal[8, 16] = modifier("b")
    idxsize: Literal[2, 4] = modifier("b")
    spfactor: Literal["sp::2:4"]
    num: Literal[1, 2, 4, 8, 16, 32, 64] = modifier("x")

    @rule("registers", reads_names=True)
    def _results(self) -> str | None:
        """No register takes two results; ptxas 13.5 fails inside where one does (measured)."""
        return repeated(self, "mdata", "cdata")


class spdecompress(Instruction, section="9.7.10.31 (9.4)", ptx="9.4", targets="sm_107a"):
    """Put the elements of `cdata` where the indices in `mdata` say within `data`, and zeros between them.

    `sp::2:4` makes 4 elements of each 2; `num` times.
    """

    syntax = "spdecompress.elemsize.idxsize.spfactor.num data, mdata, cdata"
    data: OperandLike = vector("b32", lambda form: _registers(form.target * form.elemsize * form.num))
    mdata: OperandLike = vector("b32", lambda form: _registers(form.source * form.idxsize * form.num), mixed=True)
    cdata: OperandLike = vector("b32", lambda form: _registers(form.source * form.elemsize * form.num), mixed=True)
    _: KW_ONLY
    elemsize: Literal[8, 16] = modifier("b")
    idxsize: Literal[2, 4] = modifier("b")
    spfactor: Literal["1:2", "1:4", "1:8", "1:16", "2:4", "2:8", "2:16", "4:8", "4:16"] = modifier("sp::")
    num: Literal[1, 2, 4, 8, 16, 32, 64] = modifier("x")

    @property
    def source(self) -> int:
        """The elements of a group that are kept."""
        return int(self.spfactor.split(":")[0])

    @property
    def target(self) -> int:
        """The elements of a dense group."""
        return int(self.spfactor.split(":")[1])

    @rule("group")
    def _group(self) -> str | None:
        """The kept elements of a group fit a register."""
        if (bits := self.source * self.elemsize) <= 32:
            return None
        return f"{self.source} elements of .b{self.elemsize} are {bits} bits; at most 32 fit a group of {self.spfactor}"

    @rule("index")
    def _index(self) -> str | None:
        """An index reaches every element of a group."""
        if self.target <= 2**self.idxsize:
            return None
        return f"an index of .b{self.idxsize} reaches {2**self.idxsize} elements, not {self.target}; it must be .b4"

    @rule("size")
    def _size(self) -> str | None:
        """The result has 1 to 128 registers."""
        if 32 <= (bits := self.target * self.elemsize * self.num) <= 4096:
            return None
        return f".x{self.num} of {self.target} elements of .b{self.elemsize} make {bits} bits; legal are 32 to 4096"

    @rule("registers", reads_names=True)
    def _results(self) -> str | None:
        """No register takes two results; ptxas 13.5 fails inside where one does (measured)."""
        return repeated(self, "data")
