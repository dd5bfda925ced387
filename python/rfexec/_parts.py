"""Shards: networks that compute a rectangle of an output."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from . import _c
from ._call import Call
from ._errors import UsageError
from ._network import Network, inputs_of, outputs_of


def _ends(wanted: slice, size: int, what: str) -> tuple[int, int]:
    lo, hi, step = wanted.indices(size)
    if step != 1 or hi <= lo:
        raise UsageError(f"{what} {wanted} of {size}: a slice with something in it, of step 1")
    return lo, hi


class Part(Network):
    """A shard: computes a rectangle of one output and nothing else, with the bits of the full run.

    Network.part() and Network.part_rect() make it. Give its runs the same image; they read only the
    rectangle `needs` of it. A shard and its network run one at a time.

    Attributes:
        whole: the Network that the shard belongs to.
        rows, columns: slices of the output, in pixels.
        needs: (rows, columns): slices of the image that the shard reads.
    """

    def __init__(self, whole: Network, k: int, rows: slice, columns: slice) -> None:
        whole._need()
        info = whole.outputs[k]
        if isinstance(whole, Part) or info.map is None:
            raise UsageError(
                "a part has no parts"
                if isinstance(whole, Part)
                else f"output '{info.name}' is no map: {info.shape} has no parts"
            )
        self.whole, self.model = whole, whole.model
        self._handle = ctypes.c_void_p()
        self._runners: set[int] = set()
        y0, y1 = _ends(rows, info.map[1], "rows")
        x0, x1 = _ends(columns, info.map[2], "columns")
        self.rows, self.columns = slice(y0, y1), slice(x0, x1)
        area = _c.Area(row=y0, column=x0, rows=y1 - y0, columns=x1 - x0)
        call, out = Call(), ctypes.byref(self._handle)
        with whole._busy(call):
            call.make(_c.library.rfx_network_open_part, whole._handle, k, area, out)
        whole._parts[self._handle.value or 0] = self._runners
        _c.library.rfx_network_input_area(self._handle, area)
        self.needs = (
            slice(area.row, area.row + area.rows),
            slice(area.column, area.column + area.columns),
        )
        self._inputs = inputs_of(self._handle)
        self._outputs = outputs_of(self._handle)

    def _need(self) -> None:
        if self._closed or self._handle.value not in self.whole._parts:
            raise UsageError("the part is closed, or the network that it is of")

    def close(self) -> None:
        """Frees the shard's memory. Its network stays open."""
        if not self._closed and not self.whole._closed:
            with self.whole._busy(Call()):
                self.whole._free_part(self._handle.value or 0)
        self._closed = True
        self._handle = ctypes.c_void_p()

    def _bind(self, image: Any, layout: Optional[str]) -> None:
        return

    def _busy(self, call: Call, owner: Optional[int] = None) -> Any:
        self._need()
        return self.whole._busy(call, owner)

    def cancel(self) -> None:
        self.whole.cancel()

    def __repr__(self) -> str:
        y, x = self.rows, self.columns
        return f"<rfexec.Part rows {y.start}:{y.stop}, columns {x.start}:{x.stop} of {self.whole!r}>"

    def __del__(self, _free_part: Any = Network._free_part) -> None:
        handle = getattr(self, "_handle", None)
        if handle:  # the network may have freed it, if both were in a reference cycle
            _free_part(self.whole, handle.value)
