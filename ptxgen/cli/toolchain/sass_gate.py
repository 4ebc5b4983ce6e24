"""`ptxgen sass gate FILE...`: PTX files against their versions in git, by thresholds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptxgen.cli.common.files import reason
from ptxgen.cli.common.formats import Output
from ptxgen.cli.errors import OK, WRONG, InputError
from ptxgen.files import read_file, similar_file

if TYPE_CHECKING:
    from ptxgen.reports import Result

#: What must not grow where no threshold is given.
THRESHOLDS = "registers,spills,loop-stalls+5%"


def gate(files: Sequence[str], target: str | None, fail_on: str | None, base: str | None, written: Output) -> int:
    """Compare each file with its version of a revision (HEAD), and fail where a figure exceeds its threshold.

    Files that the revision does not have pass. Raises InputError, AssemblerError.
    """
    from ptxgen.reports import Place, Report, Result
    from ptxgen.sass import compare, load
    from ptxgen.sass.show import ThresholdError, broken_thresholds

    if not files:
        raise InputError("ptxgen sass gate takes PTX files: ptxgen sass gate FILE.ptx...")
    limits = fail_on or THRESHOLDS
    # pre-commit names the revision that it compares with, where it does not run for a commit.
    revision = base or os.environ.get("PRE_COMMIT_FROM_REF") or "HEAD"
    found: list[Result] = []
    rows: list[dict[str, object]] = []
    for file in files:
        before, after = _version(file, revision), _read(file)
        broken: list[str] = []
        if before is not None and before != after:
            try:
                one, other = (load(text, target=target, origin=file) for text in (before, after))
                broken = broken_thresholds(compare(one, other), limits)
            except ThresholdError as error:
                raise InputError(str(error)) from None
        found += [
            Result("sass-changed", "error", f"the SASS exceeds a threshold: {each}", Place(file)) for each in broken
        ]
        same = "new" if before is None else "unchanged" if before == after else "within the thresholds"
        rows.append({"file": file, "revision": revision, "state": "exceeds" if broken else same, "broken": broken})

    def text() -> None:
        for row, broken in zip(rows, [row["broken"] for row in rows], strict=True):
            assert isinstance(broken, list)
            print(f"{row['file']}: {'; '.join(broken) if broken else row['state']}")

    written.write(text=text, data=lambda: {"ok": not found, "files": rows}, report=lambda: Report(tuple(found)))
    return WRONG if found else OK


def _read(file: str) -> bytes:
    try:
        return read_file(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {reason(error)}{similar_file(file)}") from None


def _version(file: str, revision: str) -> bytes | None:
    """A file as a revision has it; None if it does not. Raises InputError without git, and outside repositories."""
    folder = str(Path(file).absolute().parent)
    known = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if known.returncode:
        said = known.stderr.decode(errors="replace").strip().splitlines()
        if said:
            raise InputError(f"{file} is in no git repository: {said[0]}")
        if revision == "HEAD":  # a repository without commits
            return None
        raise InputError(f"git has no revision {revision!r}")
    shown = _git(folder, "show", f"{revision}:./{Path(file).name}")
    return None if shown.returncode else shown.stdout


def _git(folder: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", folder, *words], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    except OSError:
        raise InputError("ptxgen sass gate needs git, which is not on PATH") from None
