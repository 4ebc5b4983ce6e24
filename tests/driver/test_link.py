"""Several modules as one: relocatable device code of nvcc, cuLinkCreate, and the linker itself, judged by ptxas."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import ptxgen
from ptxgen.driver.link import linked
from ptxgen.driver.protocol import RefusedError
from tests.driver.programs import SOURCES, compile_c, execute, nvcc, require_compiler

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def module(text: str) -> str:
    return HEAD + text


def relocatable(folder: Path, *options: str) -> Path:
    """linked.cu and linked_other.cu as one program; the test is skipped where there is no nvcc."""
    compiler = nvcc()
    if compiler is None:
        pytest.skip("there is no nvcc: pip install 'ptxgen[tools]'")
    require_compiler()
    made = folder / "linked"
    sources = [SOURCES / "linked.cu", SOURCES / "linked_other.cu"]
    command = [compiler, "-rdc=true", "-lineinfo", "-o", made, *sources, *(options or ("-arch=sm_90a",))]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env={**os.environ, "NVCC_APPEND_FLAGS": ""}
    )
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("options", [(), ("-gencode", "arch=compute_90a,code=compute_90a")])
def test_relocatable_device_code(capfd: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...]) -> None:
    ran = execute(capfd, [relocatable(tmp_path, *options)])
    assert (ran.code, ran.output, ran.codes()) == (0, "PASS\n", []), ran.said
    assert len(ran.launches) == 2


def test_findings_in_relocatable_device_code_are_at_their_lines(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran = execute(capfd, [relocatable(tmp_path, "-arch=sm_90a", "-DRACE")])
    lines = (SOURCES / "linked_other.cu").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "of the other warp" in text)
    assert ran.codes("reversed") == ["shared-race"], ran.said
    assert ran.sources()[0].startswith(f"linked_other.cu:{line}:")


def test_relocatable_device_code_without_ptx(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ran = execute(capfd, [relocatable(tmp_path, "-gencode", "arch=compute_90a,code=sm_90a")])
    assert ran.code
    assert "machine code and no PTX" in ran.said
    assert not ran.launches


@pytest.mark.parametrize(("words", "said"), [([], "PASS\n"), (["twice"], "not loaded: 200\n")])
def test_linking_by_the_driver(capfd: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], said: str) -> None:
    ran = execute(capfd, [compile_c("linked.c", tmp_path / "linked", tmp_path), *words])
    assert ran.output == said, ran.said
    assert ("plus is defined in two modules" in ran.said) == bool(words)


def assembles(text: str) -> None:
    """ptxas takes a module."""
    assert ptxgen.assemble(text, target="sm_90").data


def test_own_symbols_keep_apart() -> None:
    text = module(
        ".global .u32 x = 1;\n.func (.param .b32 r) f()\n{\n.reg .b32 %t; ld.global.u32 %t, [x];"
        " st.param.b32 [r], %t; ret;\n}\n"
        ".visible .entry KERNEL(.param .u64 out)\n{\n.reg .b32 %t; .reg .b64 %o; ld.param.u64 %o, [out];\n"
        "{ .param .b32 r; call (r), f, (); ld.param.b32 %t, [r]; }\nst.global.u32 [%o], %t; ret;\n}\n"
    )
    made = linked([text.replace("KERNEL", "a"), text.replace("KERNEL", "b").replace("x = 1", "x = 2")])
    assembles(made)
    device = ptxgen.Emulator(target="sm_90a")
    import numpy as np

    for entry, expected in (("a", 1), ("b", 2)):
        out = device.empty((1,), np.uint32)
        assert device.launch(ptxgen.Kernel.from_ptx(made, entry), 1, 1, [out]).status == "ok"
        assert out.numpy()[0] == expected


def test_weak_and_visible_symbols() -> None:
    weak = module(".weak .global .u32 x = 1;\n.weak .func f()\n{\nret;\n}\n")
    strong = module(".visible .global .u32 x = 2;\n.visible .func f()\n{\nbar.sync 0;\nret;\n}\n")
    for order in ([weak, weak, strong], [strong, weak]):
        made = linked(order)
        assembles(made)
        assert made.count(" x = ") == 1
        assert "x = 2" in made
        assert made.count("bar.sync") == 1
    assert linked([weak, weak]).count("x = 1") == 1
    with pytest.raises(RefusedError, match="x is defined in two modules"):
        linked([strong, strong])


def test_externals_that_nothing_defines_stay() -> None:
    text = module(".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.extern .shared .b8 s[];\n")
    made = linked([text, text])
    assembles(made)
    assert made.count("vprintf") == made.count("s[]") == 1


def test_versions_targets_and_files() -> None:
    text = module('.file 1 "a.cu"\n.visible .entry a()\n{\n.loc 1 3 0\nret;\n}\n')
    other = text.replace("8.0", "8.3").replace("sm_90", "sm_90a").replace("a.cu", "b.cu").replace("entry a", "entry b")
    made = ptxgen.parse(linked([text, other]))
    assert (made.version, made.target) == ("8.3", "sm_90a")
    assert '.file 2 "b.cu"' in str(made)
    assert ".loc 2 3 0" in str(made)
