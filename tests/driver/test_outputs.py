"""Files of a run that cannot be written are named before the program starts."""

from __future__ import annotations

import pytest

from ptxgen.cli.main import execute


@pytest.mark.parametrize("option", ["--json", "--html", "--trace"])
def test_folders_that_do_not_exist(capfd: pytest.CaptureFixture[str], option: str) -> None:
    if option == "--trace":
        pytest.importorskip("perfetto")
    assert execute(["exec", option, "/nonexistent/file", "echo", "started"]) == 2
    printed, said = capfd.readouterr()
    assert "started" not in printed
    assert said == "error: cannot write /nonexistent/file: there is no folder /nonexistent\n"
