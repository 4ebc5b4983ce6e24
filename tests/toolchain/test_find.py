"""Where tools are looked for, and what is said when they are in none of these places."""

from pathlib import Path

import pytest

from ptxgen.toolchain import ToolNotFoundError, find, find_nvdisasm, find_ptxas, find_tool


def fake_tool(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PTXGEN_PTXAS", raising=False)
    monkeypatch.delenv("PTXGEN_NVDISASM", raising=False)


def test_the_wheels_come_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fake_tool(tmp_path, "ptxas").parent))
    assert "nvidia" in find_ptxas().parts
    assert "nvidia" in find_nvdisasm().parts


def test_the_variable_comes_before_the_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = fake_tool(tmp_path, "my-ptxas")
    monkeypatch.setenv("PTXGEN_PTXAS", str(mine))
    assert find_ptxas() == mine


def test_the_explicit_path_comes_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_PTXAS", str(fake_tool(tmp_path, "one")))
    other = fake_tool(tmp_path, "two")
    assert find_ptxas(other) == other


def test_an_explicit_name_is_searched_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = fake_tool(tmp_path, "ptxas-12")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ptxas("ptxas-12") == mine


def test_path_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "_find_in_wheels", lambda name: None)
    mine = fake_tool(tmp_path, "ptxas")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ptxas() == mine


def test_the_newest_cuda_of_the_name_space_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("cu9", "cu13", "cuda_nvcc", "cu12"):
        fake_tool(tmp_path / folder / "bin", "ptxas")

    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(find, "_listed_by_wheels", lambda name: [])
    monkeypatch.setattr(find.importlib.util, "find_spec", lambda name: Spec)
    assert find._find_in_wheels.__wrapped__("ptxas") == tmp_path / "cu13" / "bin" / "ptxas"


def test_a_named_place_without_a_tool_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolNotFoundError, match=r"given path.*nowhere"):
        find_ptxas(tmp_path / "nowhere")
    monkeypatch.setenv("PTXGEN_NVDISASM", str(tmp_path / "absent"))
    with pytest.raises(ToolNotFoundError, match=r"PTXGEN_NVDISASM.*absent"):
        find_nvdisasm()


def test_a_missing_tool_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "_find_in_wheels", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolNotFoundError, match=r"pip install 'ptxgen\[tools\]' ") as caught:
        find_ptxas()
    assert "\n" not in str(caught.value)


def test_unknown_tools_are_refused() -> None:
    with pytest.raises(ValueError, match="nvdisasm, ptxas"):
        find_tool("cuobjdump")
