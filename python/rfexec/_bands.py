"""One output in bands of rows, while another thread runs the network."""

from __future__ import annotations

import atexit
import os
import queue
import tempfile
import threading
import weakref
from typing import Any, Callable, Iterator, Optional

import numpy as np

from . import _c
from ._call import Call
from ._errors import Cancelled
from ._inputs import view_of

_SPOOLED_BYTES = 4 << 20  # size of a band that is read from the temporary file


class _Rows:
    """Passes rectangles of an output on as bands of rows.

    Complete rows in order are handed on at once. The first other rectangle, and all after it, go to a
    temporary file of rows x columns x channels.
    """

    def __init__(self, shape: tuple[Any, ...], hand: Callable[[tuple[Any, ...]], None]) -> None:
        _, self.channels, self.rows, self.columns = shape
        self.hand = hand
        self.next_row = 0
        self.file: Optional[Any] = None

    def take(self, area: _c.Area, address: int) -> None:
        values = view_of(area, address)
        whole = area.columns == self.columns and area.row == self.next_row
        if whole and self.file is None:
            self.next_row += area.rows
            self.hand((slice(area.row, self.next_row), np.array(values[None], order="C")))
            return
        if self.file is None:
            self.file = tempfile.TemporaryFile(prefix="rfexec")
        pixel = 4 * self.channels
        pixels = np.ascontiguousarray(values.transpose(1, 2, 0))
        for y in range(area.rows):
            self._write(pixels[y], ((area.row + y) * self.columns + area.column) * pixel)

    def _write(self, values: np.ndarray, at: int) -> None:
        assert self.file is not None
        left = values.data.cast("B")
        while left:
            n = os.pwrite(self.file.fileno(), left, at)
            left, at = left[n:], at + n

    def finish(self) -> None:
        """Hands on the rows in the temporary file."""
        if self.file is None:
            return
        row = 4 * self.channels * self.columns
        step = max(1, _SPOOLED_BYTES // row)
        for y in range(self.next_row, self.rows, step):
            n = min(step, self.rows - y)
            self.file.seek(y * row)
            values = np.frombuffer(self.file.read(n * row), np.float32)
            pixels = values.reshape(1, n, self.columns, self.channels)
            self.hand((slice(y, y + n), np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))))


class _Feed:
    """The thread that runs the network, and the queue to the loop that takes bands."""

    def __init__(self, call: Call, run: Callable[[], None], output: int, shape: tuple[Any, ...]) -> None:
        self.call = call
        self.run = run
        self.output = output
        self.rows = _Rows(shape, self.hand)
        self.bands: queue.Queue[Any] = queue.Queue(maxsize=1)  # one waits, one is computed, one is in use
        self.left = threading.Event()
        call.set_write(self.take)
        self.thread = threading.Thread(target=self.work, name="rfexec bands", daemon=True)
        _feeds.add(self)
        self.thread.start()

    def hand(self, item: Any) -> None:
        while not self.left.is_set():
            try:
                return self.bands.put(item, timeout=0.1)
            except queue.Full:
                pass
        raise Cancelled("the loop over bands was left")

    def take(self, k: int, area: _c.Area, address: int) -> None:
        if k == self.output:
            self.rows.take(area, address)

    def work(self) -> None:
        end: Optional[BaseException] = None
        try:
            self.run()
            self.rows.finish()
        except BaseException as failure:  # raised again by the loop
            end = failure
        try:
            self.hand(end)
        except Cancelled:
            pass

    def leave(self) -> None:
        self.left.set()
        self.call.stop()
        self.thread.join()
        if self.rows.file is not None:
            self.rows.file.close()


_feeds: weakref.WeakSet[_Feed] = weakref.WeakSet()


@atexit.register
def _leave_all() -> None:
    """Ends all threads: a thread in C must not outlive the interpreter."""
    for feed in list(_feeds):
        feed.leave()


def run_by_bands(
    call: Call, run: Callable[[], None], output: int, shape: tuple[Any, ...]
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yields (rows, band). The run starts with the first band."""
    feed = _Feed(call, run, output, shape)
    try:
        while True:
            item = feed.bands.get()
            if isinstance(item, tuple):
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        feed.leave()
