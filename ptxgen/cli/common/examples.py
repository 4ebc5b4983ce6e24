"""The examples that `--help` shows, by command: each a command line and its purpose. A test parses all."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "ptxgen": (
        ("ptxgen run blackwell/swizzled --m 512 --n 512 --k 512", "run a shipped kernel in the emulator"),
        ("ptxgen check my.ptx", "check a file of your own"),
        ("ptxgen explain tcgen05.ld", "list the instructions that begin so"),
        ("ptxgen --install-completion", "complete commands and names in your shell"),
    ),
    "run": (
        ("ptxgen run blackwell/swizzled --m 512 --n 512 --k 512 --dtype bf16", "run a GEMM and compare with NumPy"),
        ("ptxgen run blackwell/swizzled --set stages=4 --schedule random --seed 7", "with an option, at random times"),
        (
            "ptxgen run my.ptx --arg x=randn:bf16:64x512 --arg y=empty:f32:64 --arg n=512 --grid 64 --out y=y.npy",
            "run any PTX: arrays, numbers and tensormaps for its parameters, and the file of an output",
        ),
        ("ptxgen run my_job.py --json", "run a Job of your own; the report as JSON"),
        ("ptxgen run my_job.py --html report.html", "the same as a page to look at"),
    ),
    "exec": (
        ("ptxgen exec python softmax.py", "a script of Triton, Numba, CuPy, ... on an emulated B200"),
        ("ptxgen exec --target sm_90a --schedule random --seed 3 -- a.out", "a program of nvcc on an emulated H100"),
        ("ptxgen exec --json report.json -- pytest test_kernels.py", "all launches and findings as JSON"),
    ),
    "kernels": (
        ("ptxgen kernels", "list all"),
        ("ptxgen kernels blackwell/swizzled", "what one can be configured with"),
    ),
    "tune": (
        ("ptxgen tune 333 2880 2880", "measure kernels on this machine's GPU, and remember the fastest"),
        ("ptxgen tune --shapes model.txt --set dtype=e4m3", "the same for each line M N K of a file"),
    ),
    "sweep": (("ptxgen sweep blackwell/pipelined stages=3,4,5 n_tile=128,256", "build every combination, as a table"),),
    "audit": (
        ("ptxgen audit my_job.py", "which barriers and fences no run needs"),
        ("ptxgen audit blackwell/swizzled --m 128 --n 128 --time 60 --all", "a shipped kernel; all that 60 s judge"),
    ),
    "time": (
        (
            "ptxgen time hopper/overlapped --m 512 --n 512 --k 1024",
            "predicted cycles on an H200, and who waits for what",
        ),
        ("ptxgen time hopper/ring hopper/overlapped --machine h100", "two kernels of a 4096³ problem, compared"),
        (
            "ptxgen time blackwell/pipelined --html time.html --trace time.json",
            "a timeline as a page, and for Perfetto",
        ),
    ),
    "plan": (
        ("ptxgen plan 4096 4096 4096 --dtype e4m3 --c-dtype f32", "tiles for a problem on a B200, and which to take"),
        ("ptxgen plan 512 8192 5376 --set tile=256x256", "one tile: its waves, bytes and memory"),
        ("ptxgen plan 8192 8192 8192 --machine h200 --clock 1755 --json", "on an H200, at a clock, as JSON"),
    ),
    "build": (("ptxgen build blackwell/swizzled --set stages=4 -o gemm.ptx", "write the PTX of a kernel"),),
    "assemble": (
        ("ptxgen assemble my.ptx -o my.cubin", "assemble for the file's own target"),
        ("ptxgen assemble my.ptx --target sm_100a --json", "registers, spills and warnings as JSON"),
    ),
    "check": (
        ("ptxgen check my.ptx", "check for the file's own target"),
        ("ptxgen build hopper/wgmma | ptxgen check - --target sm_90a", "check standard input for a target"),
        ("ptxgen check my.ptx --watch", "check again whenever it changes"),
        ("ptxgen check my.ptx --json", "every diagnostic with line, column, code and rule"),
        ("ptxgen check . --format github --format sarif=ptxgen.sarif", "a folder, for a pull request"),
    ),
    "language-server": (("ptxgen language-server", "started by an editor; docs/editors.md has the settings"),),
    "explain": (
        ("ptxgen explain tcgen05.ld", "list the forms that begin so, with what they lack"),
        ("ptxgen explain 'ld.global.v2.f32 {%f1, %f2}, [%rd1];'", "all of one instruction, with its Python call"),
        ("ptxgen explain 0x4000404000010000", "try a number as each kind of descriptor"),
        ("ptxgen explain idesc 0x08200490 --kind f16", "one kind of descriptor"),
        ("ptxgen explain shared-race", "a code of a finding"),
    ),
    "sass": (
        ("ptxgen sass my.ptx --summary", "registers, spills and instruction classes"),
        ("ptxgen sass diff old.ptx new.ptx", "compare two, instruction by instruction"),
        ("ptxgen sass gate my.ptx --fail-on registers+2,spills", "compare with the version of git's HEAD"),
    ),
    "ncu": (
        ("ptxgen ncu report.ncu-rep", "what bounds each launch of a profile"),
        ("ptxgen ncu diff before.ncu-rep after.ncu-rep", "what a change did"),
    ),
    "layout": (("ptxgen layout operand type=f16 swizzle=128B", "draw a swizzled tile"),),
    "coverage": (("ptxgen coverage --json", "what is missing, by name"),),
    "verify": (("ptxgen verify answers.json", "compare what a GPU answered with the emulator"),),
}
