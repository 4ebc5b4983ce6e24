"""The options for a file of one's own: what it is launched with, and where its outputs go."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.groups import ATTENTION, FILE, JOB, For, Given, Group
from ptxgen.cli.errors import InputError

if TYPE_CHECKING:
    from ptxgen.cli.launch.jobs import Runnable
    from ptxgen.device import Kernel


@dataclass(frozen=True)
class LaunchOptions(Group):
    """What a file of one's own is launched with, as given."""

    PANEL = "A file of your own"
    KINDS = (FILE,)

    arguments: Annotated[
        list[str],
        typer.Option(
            "--arg",
            metavar="NAME=VALUE",
            help="A parameter, by name or number, or an array under a tensormap: FILE.npy, FILE.npz:KEY, FILE.pt:KEY; "
            "KIND:TYPE:SHAPE such as randn:bf16:512x512 (zeros, ones, arange, randn, uniform, randint, empty); a "
            "number; struct:TYPE:VALUE,... with numbers or @ARRAY for its address, or struct:FILE.json; "
            "tensormap:ARRAY:BOX[:SWIZZLE], the box outermost first.",
            show_default=False,
        ),
        For(FILE, JOB),
    ] = field(default_factory=list)
    grid: Annotated[
        str | None, typer.Option("--grid", metavar="X[xYxZ]", help="CTAs; default: 1.", show_default=False)
    ] = None
    block: Annotated[
        str | None,
        typer.Option("--block", metavar="X[xYxZ]", help="Threads per CTA; default: .reqntid.", show_default=False),
    ] = None
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="X[xYxZ]", help="CTAs per cluster.", show_default=False)
    ] = None
    shared_bytes: Annotated[
        int | None,
        typer.Option("--shared-bytes", metavar="N", help="Dynamic shared memory per CTA.", show_default=False),
    ] = None
    entry: Annotated[
        str | None,
        typer.Option(
            "--entry",
            metavar="NAME",
            help="One entry of several: its name or a unique part of it.",
            show_default=False,
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="sm_NNN",
            help="The target for FILE.cu, which nvcc compiles with line information, and of a file with several; "
            "default: sm_100a.",
            show_default=False,
            autocompletion=completion.targets,
        ),
    ] = None

    def runnable(self, path: str, seed: int, given: Given, text: str | None = None) -> Runnable:
        """What a PTX or Python file gives to run; `text` is that of a PTX file.

        Raises InputError, also for options of another kind of kernel, JobError, KernelError.
        """
        from ptxgen.cli.common.files import known_target, parse_ptx, read_ptx
        from ptxgen.cli.launch.jobs import JobRun
        from ptxgen.device import Kernel
        from ptxgen.job import load_python

        given.require(path, FILE, *[JOB] * path.endswith(".py"))
        known_target(self.target)
        if path.endswith(".py"):
            found = load_python(Path(path), seed)
            if not isinstance(found, Kernel):
                given.require(path, JOB)
                return JobRun.load(path, seed, tuple(self.arguments))
            kernel = Kernel.from_ptx(found.text, self.entry or found.name, regions=found.regions)
        else:
            text = read_ptx(path, self.target) if text is None else text
            if not list(parse_ptx(text, path).entries) and path.endswith(".cu"):
                raise InputError(
                    f"{path} has no kernel: nvcc keeps __global__ functions, and templates where instantiated"
                )
            kernel = Kernel.from_ptx(text, self.entry)
        built = kernel.module.target
        if self.target is not None and built != self.target:
            raise InputError(
                f"{path} is for {built}, not {self.target}: --target compiles FILE.cu, or picks one of several modules"
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


Outputs = Annotated[
    list[str],
    typer.Option(
        "--out",
        metavar="NAME[=FILE]",
        help="Write an array after the launch, as .npy, .npz or .pt.",
        show_default=False,
        rich_help_panel=LaunchOptions.PANEL,
    ),
    For(FILE, JOB, ATTENTION),
]
