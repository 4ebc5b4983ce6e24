"""Launch kernels of `jobs.json` on the GPU: `launch.py FOLDER REPEATS SECONDS NAME...`, with the standard library only.

compute-sanitizer injects its tools into this process, so that it is small: the CUDA driver by ctypes, no NumPy. Prints
a line of JSON for each: {"job": name, "end": "ok" | "hang" | "fault", "error": the driver's, "hashes": of the memory
after each launch}. The first that hangs or faults ends the process, since its context is lost.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import NoReturn

#: CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION and CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION of cuda.h.
CLUSTER, OVERLAP = 4, 6
#: CUDA_ERROR_NOT_READY of cuda.h.
NOT_READY = 600


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: an id and a union of 64 bytes, at 8 bytes."""

    _fields_ = (("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint * 16))


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("extents", ctypes.c_uint * 6),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    )


class DriverError(Exception):
    """The driver answered a call with an error."""


def say(name: str, end: str, error: str, hashes: list[str]) -> None:
    """Print the outcome of a job."""
    print(json.dumps({"job": name, "end": end, "error": error, "hashes": hashes}), flush=True)


def leave(name: str, end: str, error: str, hashes: list[str]) -> NoReturn:
    """Print the outcome of a job and leave at once: a hanging kernel must not keep the process."""
    say(name, end, error, hashes)
    os._exit(3)


class Driver:
    """The CUDA driver and one context on GPU 0."""

    def __init__(self) -> None:
        """Raises DriverError or OSError without a GPU."""
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        """One call. Raises DriverError with the name that the driver gives its status."""
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise DriverError(f"{name}: {(text.value or b'?').decode()}")

    def buffer(self, count: int) -> ctypes.c_uint64:
        """New memory on the GPU: its address."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count))
        return address

    def tensormap(self, job: dict, matrix: ctypes.c_uint64) -> tuple[ctypes.Array, int]:
        """The tensormap of a job, as the driver encodes it: the bytes that hold it and where in them it begins."""
        room = ctypes.create_string_buffer(192)
        at = -ctypes.addressof(room) % 64
        rows, columns = job["extents"]
        self.call(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(ctypes.addressof(room) + at),
            job["map_type"],
            2,
            matrix,
            (ctypes.c_uint64 * 2)(columns, rows),
            (ctypes.c_uint64 * 1)(2 * columns),
            (ctypes.c_uint32 * 2)(*job["box"]),
            (ctypes.c_uint32 * 2)(1, 1),
            0,
            job["swizzle"],
            0,
            0,
        )
        return room, at

    def functions(self, folder: Path, job: dict) -> list[ctypes.c_void_p]:
        """The kernels of a job, in the order of their launches."""
        found = []
        for name, entry in job["kernels"].items():
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self.call("cuModuleLoadData", ctypes.byref(module), (folder / f"{name}.cubin").read_bytes())
            self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
            found.append(function)
        return found

    def launch(self, job: dict, function: ctypes.c_void_p, pointers: ctypes.Array, *, overlaps: bool) -> None:
        """Launch a kernel that may begin before the one before it has ended."""
        attributes = (Attribute * 2)()
        count = 0
        if job["cluster"]:
            attributes[count].id = CLUSTER
            attributes[count].value[:3] = [job["cluster"], 1, 1]
            count += 1
        if overlaps:
            attributes[count].id = OVERLAP
            attributes[count].value[0] = 1
            count += 1
        config = Config((ctypes.c_uint * 6)(job["grid"], 1, 1, job["block"], 1, 1), 0, None, attributes, count)
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)

    def wait(self, seconds: float) -> bool:
        """Whether the GPU has finished within some seconds. Raises DriverError for a fault."""
        end = time.monotonic() + seconds
        while (status := self.library.cuStreamQuery(None)) == NOT_READY:
            if time.monotonic() > end:
                return False
            time.sleep(0.0005)
        if status:
            self.call("cuStreamQuery", None)
        return True


def run(driver: Driver, folder: Path, name: str, job: dict, repeats: int, seconds: float) -> None:
    """Launch a job some times over the same inputs, and print how it ended."""
    hashes: list[str] = []
    try:
        rows, columns = job["extents"]
        matrix, data = driver.buffer(2 * rows * columns), driver.buffer(job["bytes"])
        words = (ctypes.c_uint16 * (rows * columns))(*(each & 0x3FFF for each in range(rows * columns)))
        driver.call("cuMemcpyHtoD_v2", matrix, words, ctypes.c_size_t(ctypes.sizeof(words)))
        room, at = driver.tensormap(job, matrix)
        pointers = (ctypes.c_void_p * 3)(ctypes.addressof(data), ctypes.addressof(matrix), ctypes.addressof(room) + at)
        functions = driver.functions(folder, job)
        zeros, host = bytes(job["bytes"]), ctypes.create_string_buffer(job["bytes"])
        for _ in range(repeats):
            driver.call("cuMemcpyHtoD_v2", data, zeros, ctypes.c_size_t(len(zeros)))
            for number, function in enumerate(functions):
                driver.launch(job, function, pointers, overlaps=number > 0)
            if not driver.wait(seconds):
                leave(name, "hang", "", hashes)
            driver.call("cuMemcpyDtoH_v2", host, data, ctypes.c_size_t(len(host)))
            hashes.append(hashlib.sha256(host.raw).hexdigest()[:16])
    except DriverError as error:
        leave(name, "fault", str(error), hashes)
    say(name, "ok", "", hashes)


def main(arguments: list[str]) -> None:
    """Run the jobs of some names. A regular end lets a tool print its summary."""
    folder, repeats, seconds = Path(arguments[0]), int(arguments[1]), float(arguments[2])
    jobs = json.loads((folder / "jobs.json").read_text())
    driver = Driver()
    for name in arguments[3:]:
        run(driver, folder, name, jobs[name], repeats, seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
