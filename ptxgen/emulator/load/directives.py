"""What a kernel itself says of its launches: errors of its text, and the directives of its entry."""

from __future__ import annotations

from math import prod

from ptxgen.device import Finding, Kernel, LaunchShape
from ptxgen.emulator.checks.registry import launches

#: Diagnostics of an illegal kernel that a report repeats.
_REFUSALS = 20


def refusals(kernel: Kernel) -> list[Finding]:
    """Why ptxas would not assemble the kernel."""
    errors = [each for each in kernel.diagnostics if each.severity == "error"][:_REFUSALS]
    lines = kernel.text.splitlines() if errors else []
    return [
        Finding(
            "illegal-ptx",
            "error",
            f"{each.message} [{each.code}]",
            line=each.line,
            instruction=lines[each.line - 1].strip(),
        )
        for each in errors
    ]


def with_directives(kernel: Kernel, shape: LaunchShape) -> tuple[LaunchShape, list[Finding]]:
    """The shape of a launch with what the entry's directives say of it, and what they refuse (PTX ISA 11.3, 11.7).

    .reqnctapercluster gives the cluster where the launch names none; with .blocksareclusters the grid counts clusters.
    """
    found: list[Finding] = []
    extents = {
        each.name: ([int(extent) for extent in each.arguments] + [1, 1])[:3]
        for each in kernel.entry.directives
        if each.name in ("reqntid", "maxntid", "reqnctapercluster", "maxclusterrank")
    }
    directives = {each.name: each for each in kernel.entry.directives}

    def refuse(name: str, message: str) -> None:
        directive = directives[name]
        found.append(launches.LAUNCH_SHAPE.finding(directive, summary=message, rule=""))

    for name, words in (("reqntid", "exactly"), ("maxntid", "at most")):
        if name in extents:
            limits = tuple(extents[name])
            if shape.block != limits if name == "reqntid" else prod(shape.block) > prod(limits):
                refuse(name, f"the kernel takes blocks of {words} {limits} threads, not {shape.block}")
    cluster = shape.cluster
    if "reqnctapercluster" in extents:
        x, y, z = extents["reqnctapercluster"]
        if cluster not in (None, (x, y, z)):
            refuse("reqnctapercluster", f"the kernel takes clusters of exactly {(x, y, z)} CTAs, not {cluster}")
        cluster = (x, y, z)
    elif cluster is None and "explicitcluster" in directives:
        refuse("explicitcluster", "the kernel must be launched with a cluster; give the launch its extents")
    if cluster is not None and "maxclusterrank" in extents and prod(cluster) > extents["maxclusterrank"][0]:
        most = extents["maxclusterrank"][0]
        refuse("maxclusterrank", f"the kernel takes clusters of at most {most} CTAs, not {cluster}")
    if found or cluster is None:
        return shape, found
    grid = shape.grid
    if "blocksareclusters" in directives:
        grid = tuple(count * extent for count, extent in zip(grid, cluster, strict=True))
    return LaunchShape.of(grid, shape.block, cluster, shape.shared_bytes, cooperative=shape.cooperative), []
