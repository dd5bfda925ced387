"""One call of the C interface that may take long: its options, what stops it, and its errors."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Callable, Optional

from . import _c
from ._errors import UsageError, error_of
from ._sizes import c_name, c_number, parse_bytes

# The thread that this process was forked from, whose OpenMP threads stayed in the parent: the
# runtime would wait for them for ever.
forked_thread: Optional[int] = None


def _progress_function(progress: Any) -> Callable[[int, int], None]:
    """A function of (done, total); a bar as tqdm's is set to both."""
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
    """What one of several images is told, so that progress is that of all."""
    if progress is None or images == 1:
        return progress
    tell = _progress_function(progress)
    return lambda done, total: tell(image * total + done, images * total)


class Call:
    """Options of a run, the flag that ends it, and the first exception of a function that it called.

    Calls of the main thread look for signals every 50 ms; those of other threads never take the
    interpreter's lock, unless a source, a sink, progress or an observer is written in Python. See
    src/bridge.c.
    """

    def __init__(
        self, memory: Any = None, threads: int = 0, progress: Any = None, spill: Any = None
    ) -> None:
        self.failure: Optional[BaseException] = None
        self.path: Optional[bytes] = None  # of the file that is read
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
            if done == total == 1:  # the end, whatever the steps were
                done = total = known[0]
            known[0] = total
            progress(done, total)

        self.bridge.progress = self._address(_c.PROGRESS(self._guard(report)))
        self.options.progress = _c.progress_address

    def set_read(self, fill: Callable[[_c.Area, int], None]) -> tuple[Any, ...]:
        """read and user of a source that is filled by a function of (area, address)."""
        guarded = self._guard(lambda area, address: fill(area.contents, address))
        self.bridge.read = self._address(_c.READ(guarded))
        return _c.read_address, self.options.user

    def set_write(self, write: Callable[[int, _c.Area, int], None]) -> None:
        """Outputs without an array go to write(output, area, address)."""
        guarded = self._guard(lambda output, area, address: write(output, area.contents, address))
        self.bridge.write = self._address(_c.WRITE(guarded))
        self.options.write = _c.write_address

    def set_observe(self, observe: Callable[[_c.StepReport], None]) -> None:
        """Told of every step."""
        guarded = self._guard(lambda step: observe(step.contents))
        self.bridge.observe = self._address(_c.OBSERVE(guarded))
        self.options.observe = _c.observe_address

    def _guard(self, function: Callable[..., None]) -> Callable[..., int]:
        """For the bridge: 1, or 2 after an exception, which is kept and ends the call."""

        def guarded(*arguments: Any) -> int:
            try:
                function(*arguments)
                return 1
            except BaseException as failure:  # also KeyboardInterrupt: raised again by make()
                if self.failure is None:
                    self.failure = failure
                return 2

        return guarded

    def keep(self, thing: Any) -> None:
        """Something that C uses, for as long as the call lives."""
        self._kept.append(thing)

    def stop(self) -> None:
        """From any thread."""
        _c.bridge.rfxpy_stop_call(self.bridge)

    def make(self, function: Any, *arguments: Any) -> None:
        """Calls, and raises what came of it: a function's own exception, or the C text."""
        why = _c.Why()
        if threading.get_ident() == forked_thread:
            code = self._call_in_thread(function, *arguments, why)
        else:
            self.bridge.looks = threading.current_thread() is threading.main_thread()
            code = self._call(function, *arguments, why)
        self._kept.clear()  # closures that hold this call in a circle
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
            raise error_of(code, _c.text(why.text), self.path)

    def _call(self, function: Any, *arguments: Any) -> int:
        _c.bridge.rfxpy_begin(self.bridge)
        return int(function(*arguments))

    def _call_in_thread(self, function: Any, *arguments: Any) -> int:
        """In a thread that has no OpenMP threads yet, while this one waits and takes signals."""
        result: list[int] = []
        thread = threading.Thread(target=lambda: result.append(self._call(function, *arguments)))
        thread.start()
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as failure:  # of a signal's handler
                self.failure = self.failure or failure
                self.stop()
        return result[0]
