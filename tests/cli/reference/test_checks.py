"""`ptxgen explain CODE`, the pages made of the registry, and findings in the report of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxgen.emulator.checks.registry import CHECKS
from ptxgen.gemm import find
from ptxgen.instr.model.code_examples import examples
from ptxgen.instr.model.code_rules import RULES
from ptxgen.instr.model.symbols import CODES
from tests.support.command_line import Cli
from tests.support.paths import DOCS
from tools.check_table import renewed

RUN = ("run", "blackwell/swizzled", "--m", 128, "--n", 128, "--k", 256)


@pytest.mark.parametrize("code", CHECKS)
def test_every_code_is_explained(cli: Cli, code: str) -> None:
    outcome = cli("explain", "checks", code) if code == "trap" else cli("explain", code)
    words = " ".join(outcome.out.split())
    assert outcome.code == 0
    assert CHECKS[code].title in words
    assert " ".join(CHECKS[code].rule.split()[:5]) in words


def test_every_code_of_check_has_a_rule(cli: Cli) -> None:
    """A person who reads `[operand-type]` below a line of PTX asks `ptxgen explain` for it."""
    assert RULES.keys() == CODES
    for code, rule in RULES.items():
        outcome = cli("explain", "checks", code)
        assert (outcome.code, outcome.err) == (0, "")
        assert rule in outcome.out or code in CHECKS
        assert f"[{code}]\n" in outcome.out or code in CHECKS
    (found,) = json.loads(cli("explain", "unknown-modifier", "--json").out)
    assert found["example"] == examples()["unknown-modifier"]
    assert (found["title"], found["rule"]) == ("illegal modifier", RULES["unknown-modifier"])
    assert "did you mean unknown-modifier" in cli("explain", "unknown-modifer").err


def test_lists_and_json(cli: Cli) -> None:
    assert all(code in cli("explain", "checks").out for code in CHECKS)
    found = json.loads(cli("explain", "checks", "tensormap", "--json").out)
    assert {each["code"] for each in found} >= {"tensormap-rank", "illegal-tensormap"}
    assert cli("explain", "checks", "shared-rave").err == (
        "error: no check is called 'shared-rave'; did you mean shared-race or shared-size?; "
        "'ptxgen explain checks' lists all\n"
    )


def test_the_pages_are_fresh(cli: Cli) -> None:
    assert (DOCS / "checks.md").read_text() == cli("explain", "checks", "--markdown").out, "make docs"
    page = (DOCS / "emulator.md").read_text()
    assert page == renewed(page), "make docs"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The kernel with too few bytes in its expect_tx."""
    text = find("blackwell/swizzled").plan().text
    file = tmp_path / "broken.ptx"
    file.write_text(text.replace("[%r_full], 32768", "[%r_full], 16384"))
    return file


def test_consequences_are_counted_or_shown(cli: Cli, broken: Path) -> None:
    short, long = cli(*RUN, "--ptx", broken), cli(*RUN, "--ptx", broken, "-v")
    assert short.code == long.code == 1
    assert "consequence" in short.out
    assert "(-v shows them)" in short.out
    assert "[deadlock]" not in short.out
    assert "[deadlock]" in long.out
    (found,) = json.loads(cli(*RUN, "--ptx", broken, "--json").out)["launch"]["findings"]
    assert found["code"] == "expect-tx"
    assert {each["code"] for each in found["consequences"]} >= {"deadlock"}
    assert {"message", "summary", "rule", "fix", "section", "accesses"} <= found.keys()


def test_accepting(cli: Cli, tmp_path: Path) -> None:
    text = find("blackwell/swizzled").plan().text
    file, accept = tmp_path / "edited.ptx", tmp_path / "accept.toml"
    file.write_text(text.replace("fence.mbarrier_init.release.cluster;", ""))
    found = json.loads(cli(*RUN, "--ptx", file, "--json").out)["launch"]["findings"]
    assert [each["code"] for each in found] == ["mbarrier-init-proxy"]
    lines = {each["instruction"] for each in found[0]["accesses"] if each["role"] == "issuer"}
    entries = [
        f'[[accept]]\ncode = "mbarrier-init-proxy"\ninstruction = "{each}"\nreason = "one CTA"\n' for each in lines
    ]
    accept.write_text("".join(entries))
    report = json.loads(cli(*RUN, "--ptx", file, "--accept", accept, "--json").out)
    assert (report["launch"]["findings"], report["launch"]["unused_accepts"]) == ([], [])
    clean = cli(*RUN, "--accept", accept)
    assert clean.code == 0
    assert "accepted, but not found any more: [mbarrier-init-proxy]" in " ".join(clean.out.split())
    accept.write_text("[[accept]]\ncode = 1")
    bad = cli(*RUN, "--accept", accept)
    assert (bad.code, bad.err) == (2, f"error: {accept}, entry 1: code must be a string, not 1\n")


@pytest.mark.parametrize("command", ["check kernel.ptx", "run kernel.ptx --block 32"])
def test_a_code_that_no_check_has_is_refused(
    command: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codes of launches and of the text are known to both commands, as they share the file."""

    def entry(code: str) -> str:
        return f'[[accept]]\ncode = "{code}"\ninstruction = "ret;"\nreason = "a test"\n'

    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.ptx").write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\nret;\n}\n"
    )
    (tmp_path / "accept.toml").write_text(entry("uninitialized-shared") + entry("uninitialised-shard"))
    outcome = cli(*command.split(), "--accept", "accept.toml")
    assert outcome.code == 2
    assert (
        "accept.toml, entry 2: no check has the code 'uninitialised-shard'; did you mean uninitialized-shared?"
    ) in outcome.err
    (tmp_path / "accept.toml").write_text(entry("uninitialized-shared") + entry("overlooked-modifier"))
    assert cli(*command.split(), "--accept", "accept.toml").code == 0
