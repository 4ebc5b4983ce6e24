"""Triton's benchmarks: `do_bench` calls its function once, and those of `perf_report` are left out."""

import functools
import inspect

from ptxgen_exec import benchmarks


def _once(plain, torch):
    """A `do_bench` that calls the function once, and gives the time of the emulated work."""
    signature = inspect.signature(plain)

    @functools.wraps(plain)
    def bench(*arguments, **options):
        given = signature.bind(*arguments, **options)
        given.apply_defaults()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        given.arguments["fn"]()
        end.record()
        torch.cuda.synchronize()
        time = max(begin.elapsed_time(end), 1e-3)
        quantiles = given.arguments.get("quantiles")
        if quantiles:
            return [time] * len(quantiles) if len(quantiles) > 1 else time
        return [time] if given.arguments.get("return_mode") == "all" else time

    return bench


def patch(module):
    if benchmarks.WANTED:
        return
    try:
        import torch
    except ImportError:  # nothing to measure with
        return
    for name in ("do_bench", "do_bench_cudagraph", "do_bench_proton", "do_bench_cudagraph_proton"):
        if hasattr(module, name):
            setattr(module, name, _once(getattr(module, name), torch))

    def run(self, show_plots=False, print_data=False, save_path="", return_df=False, **_):
        found = [self.benchmarks] if isinstance(self.benchmarks, module.Benchmark) else list(self.benchmarks)
        benchmarks.say(f"benchmark {', '.join(each.plot_name for each in found)}: left out")
        if not return_df:
            return None
        import pandas  # pyright: ignore[reportMissingImports]

        tables = [pandas.DataFrame(columns=[*each.x_names, *each.line_names]) for each in found]
        return tables[0] if isinstance(self.benchmarks, module.Benchmark) else tables

    module.Mark.run = run
