"""One output in bands of rows, while a thread runs the network."""

from __future__ import annotations

import os
import queue
import tempfile
import threading
from typing import Any, Callable, Iterator, Optional

import numpy as np

from . import _c
from ._call import Call
from ._errors import Cancelled
from ._inputs import view_of

_SPOOLED_BYTES = 4 << 20  # of a band that comes from the temporary file


class _Rows:
    """Parts of a map on their way to the consumer: whole rows in their order go on at once; the
    first other part, and all after it, to a temporary file of rows x columns x channels."""

    def __init__(self, shape: tuple, hand: Callable[[tuple], None]) -> None:
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
        left = memoryview(values).cast("B")
        while left:
            n = os.pwrite(self.file.fileno(), left, at)
            left, at = left[n:], at + n

    def finish(self) -> None:
        """Hands out what went to the file."""
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


def run_by_bands(
    call: Call, run: Callable[[], None], output: int, shape: tuple
) -> Iterator[tuple[slice, np.ndarray]]:
    """Starts with the first band that is asked for."""
    bands: queue.Queue = queue.Queue(maxsize=1)  # at most one waits, one is made, one is used
    left = threading.Event()

    def hand(item: Any) -> None:
        while True:
            if left.is_set():
                raise Cancelled("the loop over bands was left")
            try:
                return bands.put(item, timeout=0.1)
            except queue.Full:
                pass

    rows = _Rows(shape, hand)

    def take(k: int, area: _c.Area, address: int) -> None:
        if k == output:
            rows.take(area, address)

    def work() -> None:
        end: Any = None
        try:
            run()
            rows.finish()
        except BaseException as failure:  # raised again by the consumer
            end = failure
        if not left.is_set():
            try:
                hand(end)
            except Cancelled:
                pass

    call.set_write(take)
    thread = threading.Thread(target=work, name="rfexec bands", daemon=True)
    thread.start()
    try:
        while True:
            item = bands.get()
            if isinstance(item, tuple):
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        left.set()
        call.stop()
        thread.join()
        if rows.file is not None:
            rows.file.close()
