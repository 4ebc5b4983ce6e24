"""The options of `ptxgen run` for a file of one's own: what it is launched with, and where its outputs go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.errors import InputError

if TYPE_CHECKING:
    from ptxgen.cli.launch.jobs import Runnable
    from ptxgen.device import Kernel

_PANEL = "A file of your own"

Arguments = Annotated[
    list[str],
    typer.Option(
        "--arg",
        metavar="NAME=VALUE",
        help="A parameter, by name or number, or an array under a tensormap: FILE.npy, FILE.npz:KEY, FILE.pt:KEY; "
        "KIND:TYPE:SHAPE such as randn:bf16:512x512 (zeros, ones, arange, randn, uniform, randint, empty); a number; "
        "struct:TYPE:VALUE,... with numbers or @ARRAY for its address, or struct:FILE.json; "
        "tensormap:ARRAY:BOX[:SWIZZLE], the box outermost first.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Outputs = Annotated[
    list[str],
    typer.Option(
        "--out",
        metavar="NAME[=FILE]",
        help="Write an array after the launch, as .npy, .npz or .pt.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
GridExtent = Annotated[
    str | None,
    typer.Option("--grid", metavar="X[xYxZ]", help="CTAs; default: 1.", show_default=False, rich_help_panel=_PANEL),
]
BlockExtent = Annotated[
    str | None,
    typer.Option(
        "--block",
        metavar="X[xYxZ]",
        help="Threads per CTA; default: .reqntid.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
ClusterExtent = Annotated[
    str | None,
    typer.Option("--cluster", metavar="X[xYxZ]", help="CTAs per cluster.", show_default=False, rich_help_panel=_PANEL),
]
SharedBytes = Annotated[
    int | None,
    typer.Option(
        "--shared-bytes",
        metavar="N",
        help="Dynamic shared memory per CTA.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
EntryName = Annotated[
    str | None,
    typer.Option(
        "--entry",
        metavar="NAME",
        help="One entry of several: its name or a unique part of it.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]


CudaTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="sm_NNN",
        help="The target for FILE.cu, which nvcc compiles with line information, and of a file with several; default: "
        "sm_100a.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]


@dataclass(frozen=True)
class LaunchWords:
    """The values of these options, as given."""

    arguments: list[str]
    outputs: list[str]
    grid: str | None
    block: str | None
    cluster: str | None
    shared_bytes: int | None
    entry: str | None
    target: str | None = None

    @property
    def words(self) -> list[str]:
        """They as words of a command line."""
        options = {
            "--arg": self.arguments,
            "--out": self.outputs,
            "--grid": self.grid,
            "--block": self.block,
            "--cluster": self.cluster,
            "--shared-bytes": self.shared_bytes,
            "--entry": self.entry,
            "--target": self.target,
        }
        given: list[str] = []
        for name, value in options.items():
            values = value if isinstance(value, list) else [] if value is None else [value]
            given += [word for each in values for word in (name, str(each))]
        return given

    def refuse_launch(self, kernel: str) -> None:
        """Raises InputError if any but `--out` is given, for a kernel whose plan says all of it."""
        replace(self, outputs=[]).refuse(kernel)

    def refuse(self, kernel: str) -> None:
        """Raises InputError if any is given, for a kernel whose plan says all of it."""
        if self.words:
            raise InputError(f"{self.words[0]} is for a file of your own; the plan of {kernel} says its launch")

    def runnable(self, path: str, seed: int, text: str | None = None) -> Runnable:
        """What a PTX or Python file gives to run; `text` is that of a PTX file.

        Raises InputError, JobError, KernelError.
        """
        from ptxgen.cli.common.files import parse_ptx, read_ptx
        from ptxgen.cli.launch.jobs import JobRun
        from ptxgen.device import Kernel
        from ptxgen.job import load_python

        if path.endswith(".py"):
            found = load_python(Path(path), seed)
            if not isinstance(found, Kernel):
                for name in self.words[::2]:
                    if name not in ("--arg", "--out"):
                        raise InputError(f"{name} is for a kernel alone; the job of {path} says its launch")
                return JobRun.load(path, seed, tuple(self.arguments))
            kernel = Kernel.from_ptx(found.text, self.entry or found.name, regions=found.regions)
        else:
            text = read_ptx(path, self.target) if text is None else text
            parse_ptx(text, path)
            kernel = Kernel.from_ptx(text, self.entry)
            built = kernel.module.target
            if self.target is not None and built != self.target:
                raise InputError(
                    f"{path} is for {built}, not {self.target}: "
                    "--target compiles FILE.cu, or picks one of several modules"
                )
        return self._plain(path, kernel, seed)

    def _plain(self, path: str, kernel: Kernel, seed: int) -> Runnable:
        from ptxgen.cli.launch.plain import PlainRun
        from ptxgen.cli.launch.values import extents

        return PlainRun(
            path=path,
            kernel=kernel,
            given=tuple(self.arguments),
            grid=extents("--grid", self.grid) if self.grid else (1,),
            block=extents("--block", self.block) if self.block else None,
            cluster=extents("--cluster", self.cluster) if self.cluster else None,
            shared_bytes=self.shared_bytes or 0,
            seed=seed,
        )
