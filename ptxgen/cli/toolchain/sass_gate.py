"""`ptxgen sass gate FILE...`: PTX, CUDA C++ and Python files against their versions in git, by thresholds."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptxgen.cli.common.files import reason
from ptxgen.cli.common.formats import Output
from ptxgen.cli.errors import OK, WRONG, InputError, report
from ptxgen.files import read_file, similar_file

if TYPE_CHECKING:
    from ptxgen.reports import Result
    from ptxgen.sass.show import Broken

#: Files that must be compiled to PTX first.
_COMPILED = (".cu", ".py")
#: What must not grow where no threshold is given. A share of a long loop hides a division: its MUFU does not.
THRESHOLDS = "registers,spills,loop-stalls+5%,loop-instructions+5%,loop-MUFU,loop-waits"


def gate(files: Sequence[str], target: str | None, fail_on: str | None, base: str | None, written: Output) -> int:
    """Compare each file with its version of a revision (HEAD), and fail where a figure exceeds its threshold.

    Files that the revision does not have pass; one that cannot be used does not keep the others from being compared.
    Raises InputError.
    """
    from ptxgen.cli.toolchain.sass import place_in
    from ptxgen.job import JobError
    from ptxgen.reports import Failure, Place, Report, Result
    from ptxgen.sass import ContainerError
    from ptxgen.toolchain import CompilerError

    if not files:
        raise InputError("ptxgen sass gate takes files of kernels: ptxgen sass gate FILE.ptx FILE.cu FILE.py...")
    limits = THRESHOLDS if fail_on is None else fail_on
    require_thresholds(limits)
    # pre-commit names the revision that it compares with, where it does not run for a commit.
    revision = base or os.environ.get("PRE_COMMIT_FROM_REF") or "HEAD"
    found: list[Result] = []
    failures: list[Failure] = []
    rows: list[dict[str, object]] = []
    worst = OK
    for file in files:
        try:
            before, after = _version(file, revision), _read(file)
            if before is not None and file.endswith(_COMPILED):
                after, compiled = _compiled(file, revision, target)
                broken = _grown(file, compiled, after, target, limits)
            else:
                broken = _grown(file, before, after, target, limits)
        except (InputError, ContainerError, CompilerError, JobError) as error:
            worst = max(worst, report(error) or OK)
            failures.append(Failure(str(error), Place(file)))
            rows.append({"file": file, "revision": revision, "state": "not usable", "broken": [], "error": str(error)})
            continue
        for each in broken:
            words = f"the SASS exceeds a threshold: {each}"
            found.append(Result("sass-changed", "error", words, place_in(file, str(each.ptx_line or ""), each.source)))
        same = "new" if before is None else "unchanged" if before == after else "within the thresholds"
        rows.append({"file": file, "revision": revision, "state": "exceeds" if broken else same, "broken": broken})

    def text() -> None:
        for row, broken in zip(rows, [row["broken"] for row in rows], strict=True):
            assert isinstance(broken, list)
            print(f"{row['file']}: {'; '.join(broken) if broken else row['state']}")

    written.write(
        text=text,
        data=lambda: {"ok": not found and not failures, "files": rows},
        report=lambda: Report(tuple(found), tuple(failures)),
    )
    return max(worst, WRONG if found else OK)


def require_thresholds(text: str) -> None:
    """Raises InputError for thresholds that cannot be used, whatever is compared."""
    from ptxgen.sass.show import ThresholdError, thresholds

    try:
        thresholds(text)
    except ThresholdError as error:
        raise InputError(str(error)) from None


def _compiled(file: str, revision: str, target: str | None) -> tuple[bytes, bytes]:
    """The PTX that a source makes now, and that it makes in a checkout of the revision, with what it includes there.

    Raises InputError, CompilerError, JobError.
    """
    from ptxgen.cli.common.files import read_ptx

    after = read_ptx(file, target).encode()
    path = Path(file).absolute()
    root = Path(_git(str(path.parent), "rev-parse", "--show-toplevel").stdout.decode().strip())
    with tempfile.TemporaryDirectory(prefix="ptxgen-") as folder:
        archive = _git(str(root), "archive", "--format=tar", revision)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        return after, read_ptx(str(Path(folder) / path.resolve().relative_to(root.resolve())), target).encode()


def _grown(file: str, before: bytes | None, after: bytes, target: str | None, limits: str) -> list[Broken]:
    """What exceeds its threshold. Raises InputError, ContainerError."""
    from ptxgen.cli.toolchain.sass import listing_of
    from ptxgen.sass import compare
    from ptxgen.sass.show import broken_thresholds

    if before is None or before == after:
        return []
    one, other = (listing_of(text, word, target) for text, word in ((before, f"{file} of git"), (after, file)))
    return broken_thresholds(compare(one, other), limits)


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
