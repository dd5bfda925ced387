"""One call of the C interface: its options, how it is stopped, and its errors."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Callable, Optional

from . import _c
from ._errors import UsageError, error_of
from ._sizes import c_name, c_number, parse_bytes

# The thread in which this process was forked. Its OpenMP threads stayed in the parent, and the OpenMP
# runtime would wait for them for ever.
forked_thread: Optional[int] = None


def _progress_function(progress: Any) -> Callable[[int, int], None]:
    """A function of (done, total). A bar such as tqdm's is set to both numbers."""
    if hasattr(progress, "update") and hasattr(progress, "n"):

        def move(done: int, total: int) -> None:
            progress.total = total
            progress.update(done - progress.n)

        return move
    if callable(progress):
        told: Callable[[int, int], None] = progress
        return told
    raise UsageError("progress: a function of (done, total), or a bar with n, total and update()")


def progress_of_image(progress: Any, image: int, images: int) -> Any:
    """The progress function for one of several images, so that progress counts all of them."""
    if progress is None or images == 1:
        return progress
    tell = _progress_function(progress)
    return lambda done, total: tell(image * total + done, images * total)


class Call:
    """Options of a call, the flag that stops it, and the first exception of a callback.

    Calls of the main thread check for signals every 50 ms. Calls of other threads never take the
    interpreter's lock, unless a source, a sink, progress or an observer is written in Python. See
    src/bridge.c.
    """

    def __init__(
        self, memory: Any = None, threads: int = 0, progress: Any = None, spill: Any = None
    ) -> None:
        self.failure: Optional[BaseException] = None
        self.path: Optional[bytes] = None  # of the file that the call reads
        self.bridge = _c.BridgeCall()
        self.options = _c.RunOptions()
        _c.library.rfx_run_options_init(self.options, ctypes.sizeof(self.options))
        self.options.memory_bytes = parse_bytes(memory)
        self.options.threads = c_number(threads, "threads", 32)
        if spill is not None:
            self.options.spill_folder = c_name(spill, "spill")
        self.options.user = ctypes.addressof(self.bridge)
        self.options.stop = _c.stop_address
        self._kept: list[Any] = []
        if progress is not None:
            self._set_progress(_progress_function(progress))

    def _address(self, function: Any) -> Optional[int]:
        self._kept.append(function)
        return ctypes.cast(function, ctypes.c_void_p).value

    def _set_progress(self, progress: Callable[[int, int], None]) -> None:
        known = [1]

        def report(done: int, total: int) -> None:
            if done == total == 1:  # the end of the run, whatever the number of steps
                done = total = known[0]
            known[0] = total
            progress(done, total)

        self.bridge.progress = self._address(_c.PROGRESS(self._guard(report)))
        self.options.progress = _c.progress_address

    def set_read(self, fill: Callable[[_c.Area, int], None]) -> tuple[Any, ...]:
        """`read` and `user` of a source that a function of (area, address) fills."""
        guarded = self._guard(lambda area, address: fill(area.contents, address))
        self.bridge.read = self._address(_c.READ(guarded))
        return _c.read_address, self.options.user

    def set_write(self, write: Callable[[int, _c.Area, int], None]) -> None:
        """Sends outputs without an array to write(output, area, address)."""
        guarded = self._guard(lambda output, area, address: write(output, area.contents, address))
        self.bridge.write = self._address(_c.WRITE(guarded))
        self.options.write = _c.write_address

    def set_observe(self, observe: Callable[[_c.StepReport], None]) -> None:
        """Calls a function after every step."""
        guarded = self._guard(lambda step: observe(step.contents))
        self.bridge.observe = self._address(_c.OBSERVE(guarded))
        self.options.observe = _c.observe_address

    def _guard(self, function: Callable[..., None]) -> Callable[..., int]:
        """Wraps a callback for the bridge: returns 1, or 2 after an exception, which is kept and
        ends the call."""

        def guarded(*arguments: Any) -> int:
            try:
                function(*arguments)
                return 1
            except BaseException as failure:  # including KeyboardInterrupt; make() raises it again
                if self.failure is None:
                    self.failure = failure
                return 2

        return guarded

    def keep(self, thing: Any) -> None:
        """Keeps an object that C uses alive as long as the call."""
        self._kept.append(thing)

    def stop(self) -> None:
        """Stops the call, from any thread."""
        _c.bridge.rfxpy_stop_call(self.bridge)

    def make(self, function: Any, *arguments: Any) -> None:
        """Calls a C function and raises its error, or the exception of a callback."""
        why = _c.Why()
        if threading.get_ident() == forked_thread:
            code = self._call_in_thread(function, *arguments, why)
        else:
            self.bridge.looks = threading.current_thread() is threading.main_thread()
            code = self._call(function, *arguments, why)
        self._kept.clear()  # these closures refer to this call
        if self.bridge.raised[0]:
            raised = list(self.bridge.raised)
            self.bridge.raised = (None, None, None)
            _c.raise_again(raised)
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        if self.bridge.lost:
            raise KeyboardInterrupt
        if code != 0:
            text = _c.text(why.text)
            raise error_of(code, text, self.options.mask if text.startswith("mask: ") else self.path)

    def _call(self, function: Any, *arguments: Any) -> int:
        _c.bridge.rfxpy_begin(self.bridge)
        return int(function(*arguments))

    def _call_in_thread(self, function: Any, *arguments: Any) -> int:
        """Calls in a new thread, which has no OpenMP threads yet, while this one waits and takes signals."""
        result: list[int] = []
        thread = threading.Thread(target=lambda: result.append(self._call(function, *arguments)))
        thread.start()
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as failure:  # raised by a signal handler
                self.failure = self.failure or failure
                self.stop()
        return result[0]
