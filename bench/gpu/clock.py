"""Time and cycles on the GPU itself, and its clock, power and temperature while it works."""

from __future__ import annotations

import statistics
import threading
import time
from dataclasses import dataclass
from typing import Any

#: Appends (globaltimer, clock64, multiprocessor) to a list: its length first, then entries of 32 bytes.
PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry stamp(.param .u64 list)
.reqntid 1, 1, 1
{
    .reg .b32 %r_at, %r_sm;
    .reg .b64 %rd_list, %rd_entry, %rd_time, %rd_clock;
    ld.param.u64 %rd_list, [list];
    cvta.to.global.u64 %rd_list, %rd_list;
    mov.u64 %rd_time, %globaltimer;
    mov.u64 %rd_clock, %clock64;
    mov.u32 %r_sm, %smid;
    atom.global.add.u32 %r_at, [%rd_list], 1;
    mad.wide.u32 %rd_entry, %r_at, 32, %rd_list;
    st.global.u64 [%rd_entry+32], %rd_time;
    st.global.u64 [%rd_entry+40], %rd_clock;
    st.global.u32 [%rd_entry+48], %r_sm;
    ret;
}
"""


@dataclass(frozen=True)
class Interval:
    """Nanoseconds and cycles between two stamps; no cycles where they were not of one multiprocessor."""

    ns: int
    cycles: int | None


def intervals(words: list[int]) -> list[Interval]:
    """The intervals of pairs of stamps; `words` are the list's 64-bit words after its head, 4 a stamp."""
    made = []
    for at in range(0, len(words) - 7, 8):
        start, end = words[at : at + 3], words[at + 4 : at + 7]
        same = start[2] & 0xFFFFFFFF == end[2] & 0xFFFFFFFF
        made.append(Interval(end[0] - start[0], end[1] - start[1] if same else None))
    return made


class Monitor:
    """Samples clock (MHz), power (W) and temperature (°C) through NVML in a thread. Without NVML it has no samples."""

    def __init__(self, period: float = 0.02) -> None:
        self.samples: list[tuple[float, float, float, float]] = []
        self.driver = ""
        self._stop = threading.Event()
        self._nvml: Any = None
        try:
            import pynvml  # type: ignore[import-not-found]

            pynvml.nvmlInit()
            self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
            driver = pynvml.nvmlSystemGetDriverVersion()
            self.driver = driver.decode() if isinstance(driver, bytes) else driver
            self._sample()
        except Exception as error:  # any failure of NVML leaves the benchmark usable
            print(f"no NVML: {error}", flush=True)
            self._nvml = None
            return
        self._period = period
        threading.Thread(target=self._run, daemon=True).start()

    def _sample(self) -> None:
        nvml, handle = self._nvml, self._handle
        self.samples.append(
            (
                time.monotonic(),
                nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
                nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            )
        )

    def _run(self) -> None:
        while not self._stop.wait(self._period):
            try:
                self._sample()
            except Exception:
                return

    def close(self) -> None:
        self._stop.set()

    def since(self, start: float) -> dict[str, float]:
        """Medians from a time of `time.monotonic` on."""
        chosen = [each for each in self.samples if each[0] >= start] or self.samples[-1:]
        if not chosen:
            return {}
        names = ("mhz", "watts", "celsius")
        return {name: round(statistics.median(each[1 + i] for each in chosen), 1) for i, name in enumerate(names)}
