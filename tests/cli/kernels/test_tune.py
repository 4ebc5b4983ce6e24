"""`ptxgen tune` where there is no GPU: what it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxgen.cli.errors import InputError
from ptxgen.cli.kernels.tune import _problems
from tests.support.command_line import Cli


def test_problems_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "shapes"
    file.write_text("# a model\n200 5120 5120\n333x2880x2880\n1, 4096, 4096  # one token\n\n")
    assert list(_problems([], file)) == [(200, 5120, 5120), (333, 2880, 2880), (1, 4096, 4096)]
    assert list(_problems([1, 2, 3], None)) == [(1, 2, 3)]


@pytest.mark.parametrize("line", ["200 5120", "200 5120 5120 1", "0 1 2", "a b c", "-1 2 3"])
def test_other_lines_are_refused_by_their_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "shapes"
    file.write_text(f"1 2 3\n{line}\n")
    with pytest.raises(InputError, match=r"shapes:2: a problem is M N K, three whole numbers from 1 on, not"):
        list(_problems([], file))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "tune takes M N K, or --shapes FILE"),
        (["1", "2"], "a problem is M N K"),
        (["1", "2", "3", "--set", "dtype"], "--set takes OPTION=VALUE"),
        (["--shapes", "nowhere"], "cannot read nowhere"),
    ],
)
def test_what_is_refused(cli: Cli, arguments: list[str], said: str) -> None:
    outcome = cli("tune", *arguments)
    assert outcome.code == 2
    assert said in " ".join(outcome.err.split())
