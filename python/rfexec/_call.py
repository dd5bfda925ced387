"""One call of the C interface that may take long: its options, what stops it, and its errors."""

from __future__ import annotations

import ctypes
import threading
from typing import Any, Callable, Optional

from . import _c
from ._errors import UsageError, error_of
from ._sizes import parse_bytes


def _progress_function(progress: Any) -> Callable[[int, int], None]:
    """A function of (done, total); a bar as tqdm's is set to both."""
    if callable(progress) and not hasattr(progress, "update"):
        return progress
    if hasattr(progress, "update") and hasattr(progress, "n"):

        def move(done: int, total: int) -> None:
            progress.total = total
            progress.update(done - progress.n)

        return move
    raise UsageError("progress: a function of (done, total), or a bar with n, total and update()")


class Call:
    """Options of a run, the flag that ends it, and the first exception of a function that it called.

    Python's signal handlers run in the main thread only, and only when Python code does: so a call
    made there is interrupted every 50 ms to look for signals. Calls of other threads never take the
    interpreter's lock, unless a source, a sink or progress is written in Python.
    """

    def __init__(self, memory: Any = None, threads: int = 0, progress: Any = None) -> None:
        self.failure: Optional[BaseException] = None
        self.bridge = _c.BridgeCall()
        self.options = _c.RunOptions()
        _c.library.rfx_run_options_init(self.options, ctypes.sizeof(self.options))
        self.options.memory_bytes = parse_bytes(memory)
        try:
            self.options.threads = threads.__index__()
        except AttributeError:
            raise UsageError(f"threads is {threads!r}: a number, or 0 for all processors") from None
        self.options.user = ctypes.addressof(self.bridge)
        self.options.stop = _c.stop_address
        self._kept: list[Any] = []
        if progress is not None:
            self._set_progress(_progress_function(progress))
        if threading.current_thread() is threading.main_thread():
            poll = _c.POLL(self.guard(_look_for_signals))
            self._kept.append(poll)
            self.bridge.poll = ctypes.cast(poll, ctypes.c_void_p).value

    def _set_progress(self, progress: Callable[[int, int], None]) -> None:
        known = [1]

        def report(done: int, total: int) -> None:
            if done == total == 1:  # the end, whatever the steps were
                done = total = known[0]
            known[0] = total
            progress(done, total)

        function = _c.PROGRESS(self.guard(report))
        self._kept.append(function)
        self.bridge.progress = ctypes.cast(function, ctypes.c_void_p).value
        self.options.progress = _c.progress_address

    def guard(self, function: Callable[..., None]) -> Callable[..., int]:
        """For C: 0, or 1 after an exception, which is kept and ends the call."""

        def guarded(*arguments: Any) -> int:
            try:
                function(*arguments)
                return 0
            except BaseException as failure:  # also KeyboardInterrupt: raised again by make()
                if self.failure is None:
                    self.failure = failure
                return 1

        return guarded

    def set_write(self, write: Callable[[int, _c.Area, int], None]) -> None:
        """Outputs without an array go to write(output, area, address)."""

        def take(_user: int, output: int, area: Any, address: int) -> None:
            write(output, area.contents, address)

        function = _c.WRITE(self.guard(take))
        self._kept.append(function)
        self.options.write = ctypes.cast(function, ctypes.c_void_p).value

    def keep(self, thing: Any) -> None:
        """Something that C uses, for as long as the call lives."""
        self._kept.append(thing)

    def stop(self) -> None:
        """From any thread."""
        _c.bridge.rfxpy_stop_call(self.bridge)

    def make(self, function: Any, *arguments: Any) -> None:
        """Calls, and raises what came of it: a function's own exception, or the C text."""
        why = _c.Why()
        _c.bridge.rfxpy_begin(self.bridge)
        code = function(*arguments, ctypes.byref(why))
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        if code != 0:
            raise error_of(code, _c.text(why.text))


def _look_for_signals() -> None:
    ctypes.pythonapi.PyErr_CheckSignals()  # raises what the handlers raise: KeyboardInterrupt
