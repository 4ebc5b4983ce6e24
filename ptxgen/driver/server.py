"""The emulator's side of `ptxgen exec`: it answers the stand-in drivers of all processes of a program."""

from __future__ import annotations

import re
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ptxgen import limits
from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.device import AcceptError, KernelArgumentError, LaunchError, LaunchReport
from ptxgen.driver import images, protocol
from ptxgen.driver.device import ProgramDevice, status_of
from ptxgen.driver.device_runtime import with_device_runtime
from ptxgen.driver.host_races import host_race
from ptxgen.driver.memory import SharedMemory
from ptxgen.driver.modules import Function, Loaded
from ptxgen.driver.names import demangled, short_name
from ptxgen.driver.options import Options
from ptxgen.driver.protocol import Kind, LaunchRequest, Message, RefusedError, Status
from ptxgen.driver.repeats import Repeats
from ptxgen.driver.results import Results
from ptxgen.driver.unsupported import reason_of
from ptxgen.driver.waiting import Waiting
from ptxgen.emulator.load.accepts import ignore_accepts, inline_accepts
from ptxgen.emulator.memory.faults import MemoryFault
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.observers.footprint import PART_BYTES, Footprint, may_release
from ptxgen.emulator.schedule.watchdog import Progress

if TYPE_CHECKING:
    from ptxgen.emulator.observers.trace import Trace

#: Seconds of a launch after which its progress is printed, and between two such lines.
_FIRST_PROGRESS, _EVERY = 2.0, 10.0
#: Seconds that the end of a run waits for a launch before it writes the trace.
_TRACE_SECONDS = 2.0
#: When operations of streams run (enum Delay of native/standin.h).
_DELAYS = {"eager": 0, "late": 1, "random": 2}
#: Libraries of NVIDIA's that frameworks try out and can do without (XLA). Each of their calls returns that it failed.
_OF_NVIDIA = re.compile(r"lib(cublas|cublasLt|cudnn\w*|cupti|cusolver|cusparse|cufft)\.so")
#: cudaMemcpyKind by number.
_COPY_KINDS = (
    "cudaMemcpyHostToHost", "cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice",
)  # fmt: skip
#: Words of the stand-in about calls that it refuses.
_REFUSED = frozenset({"unsupported", "invalid-launch", "shared-opt-in"})
#: Nanoseconds on the device that a launch, and a warp-instruction of it, are taken to last.
_LAUNCH_NANOSECONDS, _INSTRUCTION_NANOSECONDS = 4000, 1


class Server:
    """Answers at a socket that listens.

    `results` take what launches show; `folders` have PTX that compilers of the program keep.
    """

    def __init__(self, options: Options, listening: socket.socket, results: Results, folders: list[Path]) -> None:
        self.options, self.results = options, results
        self.memory = SharedMemory(options.memory)
        self.device = ProgramDevice(options, self.memory)
        self.device.on_progress = self._progress
        self.folders = folders
        self.deadline: float | None = None
        self._image_device = images.Device.of(options.target)
        self._modules: dict[int, Loaded] = {}
        self._functions: list[Function] = []
        self._numbers = 0
        self._repeats = Repeats(self.memory)
        self._lock = threading.Lock()
        self._waiting = Waiting(self._lock, self.device, self.memory, results.note)
        self._running: LaunchRequest | None = None
        #: The connection of the process that is answered.
        self._asking: socket.socket | None = None
        #: Of the launches that are checked, with --trace.
        self._trace: Trace | None = None
        if options.trace is not None:
            from ptxgen.emulator.observers.trace import Trace

            self._trace = Trace()
        #: Memory that the last launch has accessed.
        self._accessed = b""
        self._began = self._told = 0.0
        self._answers: dict[Message, Callable[[bytes, int], bytes]] = {
            Message.ALLOCATE: self._allocate,
            Message.FREE: self._free,
            Message.LOAD: self._load,
            Message.UNLOAD: self._unload,
            Message.FUNCTION: self._function,
            Message.VARIABLE: self._variable,
            Message.ENTRIES: self._entries,
            Message.LAUNCH: self._launch,
            Message.TENSORMAP: self._tensormap,
            Message.RANGE: self._range,
            Message.NOTE: self._note,
        }
        self._socket = listening
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def running(self) -> str:
        """The demangled name of the kernel that is being emulated; empty if none is."""
        request, waiting = self._running, self._waiting.kernels
        if request is None and waiting:
            return waiting[-1]
        return short_name(self._functions[request.function].kernel.name) if request is not None else ""

    def settle(self, seconds: float) -> bool:
        """Wait until no call is being answered, and what it shows is printed; False after so many seconds."""
        if self._lock.acquire(timeout=seconds):
            self._lock.release()
            return True
        return False

    def write_trace(self) -> None:
        """Write the launches so far to the file of --trace; one that still runs is left out of it."""
        if self._trace is None or self.options.trace is None:
            return
        if not self.settle(_TRACE_SECONDS):
            self.results.say(f"trace: {self.running} still ran, and nothing was written")
            return
        try:
            self._trace.write(str(self.options.trace))
            self.results.say(f"trace: {self.options.trace}; open it in ui.perfetto.dev")
        except OSError as error:
            self.results.say(f"cannot write {self.options.trace}: {(error.strerror or str(error)).lower()}")

    # Connections.

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one process until it ends."""
        process = 0
        try:
            while True:
                number, size = protocol.HEAD.unpack(_receive(connection, protocol.HEAD.size))
                data = _receive(connection, size)
                if number == Message.HELLO:
                    (process,) = protocol.NUMBER.unpack(data)
                    self._greet(connection)
                    continue
                status, answer = self._answer(Message(number), data, process, connection)
                connection.sendall(protocol.HEAD.pack(status, len(answer)) + answer)
                if connection in self._waiting.told:
                    break
        except (EOFError, OSError):
            pass
        self._waiting.told.discard(connection)
        connection.close()

    def _greet(self, connection: socket.socket) -> None:
        machine = protocol.MACHINE.pack(
            HEAP_BASE,
            self.memory.limit,
            self._image_device.capability,
            self.options.multiprocessors,
            limits.shared_per_sm(self.options.target),
            _DELAYS[self.options.schedule] | (self.options.seed & 0xFFFFFF) << 8,
        )
        connection.sendall(protocol.HEAD.pack(0, len(machine)) + machine)
        socket.send_fds(connection, [b"h"], [self.memory.descriptor])

    def _answer(self, message: Message, data: bytes, process: int, asking: socket.socket) -> tuple[int, bytes]:
        with self._lock:
            self._asking = asking
            try:
                return Status.SUCCESS, self._answers[message](data, process)
            except RefusedError as error:
                if error.message:
                    self.results.note(error.message)
                return error.status, error.answer
            except Exception as error:
                traceback.print_exc(file=sys.stderr)
                self.results.note(f"internal error, please report it: {type(error).__name__}: {error}")
                return Status.LAUNCH_FAILED, b""

    # Memory.

    def _allocate(self, data: bytes, process: int) -> bytes:
        size, kind, _ = protocol.ALLOCATION.unpack(data)
        try:
            self.memory.fits(size)
            return protocol.ADDRESS.pack(self.memory.allocate_for_program(size, Kind(kind)))
        except LaunchError:
            raise RefusedError(
                Status.OUT_OF_MEMORY,
                f"an allocation of {size} bytes does not fit: the emulated GPU has {self.memory.limit} bytes "
                "(--memory)",
            ) from None

    def _free(self, data: bytes, process: int) -> bytes:
        (address,) = protocol.ADDRESS.unpack(data)
        try:
            self.memory.free(address)
        except MemoryFault:
            raise RefusedError(
                Status.INVALID_VALUE, f"free of {address:#x}, where no allocation in use begins"
            ) from None
        return b""

    def _range(self, data: bytes, process: int) -> bytes:
        found = self.memory.find(*protocol.ADDRESS.unpack(data))
        if found is None:
            raise RefusedError(Status.NOT_FOUND)
        return protocol.RANGE.pack(found.address, found.bytes, found.kind, 0)

    # Modules.

    def _load(self, data: bytes, process: int) -> bytes:
        text = with_device_runtime(images.ptx_of(data, self._image_device, self.folders))
        self._numbers += 1
        self._modules[self._numbers] = Loaded.of(self._numbers, text, self.memory)
        return protocol.NUMBER.pack(self._numbers)

    def _unload(self, data: bytes, process: int) -> bytes:
        (number,) = protocol.NUMBER.unpack(data)
        module = self._modules.pop(number, None)
        if module is not None:
            module.unload()
        return b""

    def _module(self, data: bytes) -> tuple[Loaded, str]:
        (number,) = protocol.NUMBER.unpack_from(data)
        module = self._modules.get(number)
        if module is None:
            raise RefusedError(Status.INVALID_VALUE)
        return module, data[protocol.NUMBER.size :].decode(errors="replace")

    def _function(self, data: bytes, process: int) -> bytes:
        module, name = self._module(data)
        kernel = module.kernels.get(name)
        if kernel is None:
            raise RefusedError(Status.NOT_FOUND)
        try:
            inline_accepts(kernel)
        except AcceptError as error:  # the program runs all the same, and more is reported
            self.results.note(f"comments that accept findings are ignored: {error}")
            ignore_accepts(kernel)
        function = Function(len(self._functions), module, kernel, self.device.hardware(kernel))
        self._functions.append(function)
        return function.answer(self._image_device.capability)

    def _variable(self, data: bytes, process: int) -> bytes:
        module, name = self._module(data)
        return protocol.VARIABLE.pack(*module.variable(name))

    def _entries(self, data: bytes, process: int) -> bytes:
        module, _ = self._module(data)
        return b"".join(name.encode() + b"\0" for name in module.kernels)

    # Launches.

    def _launch(self, data: bytes, process: int) -> bytes:
        (number,) = struct.unpack_from("<I", data)
        function = self._functions[number]
        request = LaunchRequest.read(data, function.parameter_bytes)
        name = function.kernel.name
        self._running, self._began = request, time.monotonic()
        self._told = self._began + _FIRST_PROGRESS - _EVERY
        self.device.checks = self._is_checked(name)
        known = self._repeats.begin(request, self.device.checks)
        if known is not None:
            self._running = None
            self.results.add(request, name, known, process, repeated=True)
            return self._launched(known)
        if self.deadline is not None:
            self.device.timeout = max(self.deadline - time.monotonic(), 0.1)
        watches = request.flags & protocol.WANTS_ACCESSES
        watching = Footprint(self.memory.extent, may_release(function.kernel)) if watches else None
        self.device.outside = self._outside(request, watching, name)
        try:
            traced = (self._trace,) if self._trace is not None and self.device.checks else ()
            report = self.device.run(function, request, process, [*traced, *(() if watching is None else (watching,))])
        except RefusedError as error:
            self.results.refuse(request, name, error.message, process)
            raise RefusedError(error.status) from None
        except KernelArgumentError as error:
            self.results.refuse(request, name, str(error), process)
            raise RefusedError(Status.INVALID_VALUE) from None
        finally:
            self._running = self.device.outside = None
        if function.loaded.kept is not None:
            function.loaded.kept.save()
        self.results.add(request, name, report, process, line=function.loaded.place)
        status, printed = status_of(report), self.device.take_printed()
        self._repeats.end(report, printed)
        self._accessed = watching.parts() if watching is not None else b""
        answer = self._launched(report) + printed.encode()
        if status != Status.SUCCESS:
            raise RefusedError(status, answer=answer)  # the program still gets what was printed
        return answer

    def _outside(
        self, request: LaunchRequest, watching: Footprint | None, kernel: str
    ) -> Callable[[bool], bool] | None:
        """What lets a launch wait for the program, or for another stream; None for one that cannot."""
        if watching is None or self._asking is None or not request.flags & protocol.MAY_WAIT:
            return None
        wait = self._waiting.for_change(self._asking, watching, short_name(kernel))

        def outside(certain: bool) -> bool:
            running, began, told = self._running, self._began, self._told
            self._running = None
            self._repeats.forget()
            try:
                return wait(certain)
            finally:
                self._repeats.forget()
                self._running, self._began, self._told = running, began, told

        return outside

    def _launched(self, report: LaunchReport) -> bytes:
        """The answer to the last launch, without what it printed."""
        head = _nanoseconds(report), len(self.results.launches), len(self._accessed) // PART_BYTES
        return protocol.LAUNCHED.pack(*head) + self._accessed

    def _is_checked(self, name: str) -> bool:
        chosen = self.options.kernels
        if chosen is not None and not any(map(chosen.search, (name, short_name(name), demangled(name)))):
            return False
        first, last = self.options.launches
        count = 1 + sum(each.kernel == name for each in self.results.launches)
        return first <= count and (last is None or count <= last)

    def _progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._told >= _EVERY:
            self._told = now
            self.results.say(f"{self.running} is running: {progress}")

    def _tensormap(self, data: bytes, process: int) -> bytes:
        v = protocol.TENSORMAP.unpack(data)
        dtype, rank, address = v[0], v[1], v[2]
        dims, strides = v[3 : 3 + rank], v[8 : 8 + max(rank - 1, 1)]
        box, steps = v[13 : 13 + rank], v[18 : 18 + rank]
        interleave, swizzle, promotion, fill = v[23:27]
        corners = rank - 2
        lower, upper = v[27 : 27 + corners], v[32 : 32 + corners]
        channels, pixels, mode = v[37], v[38], v[39]
        try:
            if mode:
                made: TensorMap = TensorMap.im2col(
                    dtype, address, dims, strides, lower, upper, channels, pixels, element_strides=steps,
                    interleave=interleave, swizzle=swizzle, l2_promotion=promotion, oob_fill=fill,
                )  # fmt: skip
            else:
                made = TensorMap.tiled(
                    dtype, address, dims, strides, box, element_strides=steps, interleave=interleave,
                    swizzle=swizzle, l2_promotion=promotion, oob_fill=fill,
                )  # fmt: skip
        except DescriptorError as error:
            what = "cuTensorMapEncodeIm2col" if mode else "cuTensorMapEncodeTiled"
            raise RefusedError(Status.INVALID_VALUE, f"{what}: {error}") from None
        return made.encode()

    # Words of the stand-in.

    def _note(self, data: bytes, process: int) -> bytes:
        word, _, rest = data.decode(errors="replace").partition(" ")
        self.results.refused_calls += word in _REFUSED
        if word == "unsupported":
            reason = reason_of(rest)
            self.results.note(
                f"the program calls {rest}, which the emulated driver does not support{reason and f': {reason}'}"
            )
        elif word == "invalid-copy":
            address, size = rest.split()
            where = self.memory.describe(int(address, 16))
            self.results.note(f"a copy or fill of {size} bytes at {address} exceeds its allocation: {where}")
        elif word == "wrong-direction":
            call, size, kind, *sides = rest.split()
            source, destination = ("device" if side == "1" else "host" for side in sides)
            self.results.note(
                f"{call} of {size} bytes says {_COPY_KINDS[int(kind)]} but goes from {source} to {destination} memory: "
                "undefined (CUDA Runtime API, cudaMemcpy); copied by the addresses here"
            )
        elif word == "invalid-launch":
            name, _, shape = rest.partition(" ")
            self.results.note(f"launch of {short_name(name)} refused: no GPU takes {shape}")
        elif word == "shared-opt-in":
            name, asked, most = rest.split()
            self.results.note(
                f"launch of {short_name(name)} refused: {asked} bytes of dynamic shared memory, but without "
                f"cudaFuncAttributeMaxDynamicSharedMemorySize at most {most} are allowed"
            )
        elif word == "host-race":
            self.results.add_host_race(*host_race(rest, self.memory, self.results.launches))
        elif word == "ptx-folder":
            self.folders += {Path(rest)}.difference(self.folders)
        elif word == "no-kernel":
            self.results.not_loaded[rest] += 1
        elif word == "unpatched-runtime" and _OF_NVIDIA.match(Path(rest).name):
            name = Path(rest).name
            self.results.note(f"{name} is machine code and no PTX, so that its calls fail")
            if not name.startswith("libcupti") and name not in self.results.failing_libraries:
                self.results.failing_libraries.append(name)
        elif word == "unpatched-runtime":
            self.results.is_blind = True
            self.results.note(
                f"{Path(rest).name} has a copy of NVIDIA's runtime without symbols, which cannot be replaced; link it "
                "with -cudart shared, or without -s and strip"
            )
        else:
            self.results.note(re.sub(r"\s+", " ", f"{word} {rest}"))
        return b""


def _nanoseconds(report: LaunchReport) -> int:
    """How long a launch lasts on the device."""
    return _LAUNCH_NANOSECONDS + report.instructions * _INSTRUCTION_NANOSECONDS


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        count = connection.recv_into(view[done:])
        if not count:
            raise EOFError
        done += count
    return bytes(data)
