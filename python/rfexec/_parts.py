"""Shards: networks that compute a rectangle of an output, and rounds of states before them."""

from __future__ import annotations

import ctypes
from typing import Any, Iterable, Optional

import numpy as np

from . import _c
from ._call import Call
from ._errors import UsageError
from ._inputs import Input, layout_of
from ._network import Memory, Network, Observer, inputs_of, outputs_of
from ._pictures import is_picture, take_picture
from ._steps import observe


def _ends(wanted: slice, size: int, what: str) -> tuple[int, int]:
    lo, hi, step = wanted.indices(size)
    if step != 1 or hi <= lo:
        raise UsageError(f"{what} {wanted} of {size}: a slice with something in it, of step 1")
    return lo, hi


def _slices(area: _c.Area) -> tuple[slice, slice]:
    return slice(area.row, area.row + area.rows), slice(area.column, area.column + area.columns)


def _block(states: Any) -> tuple[Any, int, Any]:
    """Address and size of a bytes-like object, and what must live as long as the address is used."""
    if states is None:
        return None, 0, None
    try:
        array = np.frombuffer(states, np.uint8)
    except (TypeError, ValueError, BufferError) as failure:
        raise UsageError(f"states of type {type(states).__name__}: bytes of Round.run() ({failure})") from None
    return array.ctypes.data, array.size, array


def _take(handle: Any) -> bytes:
    """A copy of bytes of the C library, which are freed."""
    try:
        return ctypes.string_at(_c.library.rfx_bytes_data(handle), _c.library.rfx_bytes_size(handle))
    finally:
        _c.library.rfx_bytes_free(handle)


def _area_of(network: Network, k: int, rows: slice, columns: slice) -> Optional[_c.Area]:
    """The rectangle of output k; None: it is no map, and slices of all of it are given."""
    planes = network.outputs[k].map
    if planes is None:
        return None
    y0, y1 = _ends(rows, planes[1], "rows")
    x0, x1 = _ends(columns, planes[2], "columns")
    return _c.Area(row=y0, column=x0, rows=y1 - y0, columns=x1 - x0)


def count_rounds(network: Network, k: int) -> int:
    """Network.rounds()."""
    call, rounds = Call(), ctypes.c_int()
    with network._busy(call):
        call.make(_c.library.rfx_network_rounds, network._handle, k, ctypes.byref(rounds))
    return rounds.value


def needs_after(network: Network, k: int, rows: slice, columns: slice) -> tuple[slice, slice]:
    """What a part of output k will read of the image when all rounds are done."""
    call, area = Call(), _c.Area()
    with network._busy(call):
        call.make(
            _c.library.rfx_network_part_area_after,
            network._handle,
            k,
            _area_of(network, k, rows, columns),
            area,
        )
    return _slices(area)


def merge_states(network: Network, states: Iterable[Any]) -> bytes:
    """Network.merge_states()."""
    blocks = [_block(block) for block in states]
    n = len(blocks)
    addresses = (ctypes.c_void_p * n)(*(address for address, _, _ in blocks))
    sizes = (ctypes.c_size_t * n)(*(size for _, size, _ in blocks))
    call, out = Call(), ctypes.c_void_p()
    with network._busy(call):
        call.make(
            _c.library.rfx_network_merge_states, network._handle, addresses, sizes, n, ctypes.byref(out)
        )
        return _take(out)


class Round:
    """One shard's part in a round of states; Network.round() makes it.

    Attributes:
        network: the Network that it is of.
        number: the number of the round, from 1.
        index, count: shard `index` (from 1) of `count`.
        needs: (rows, columns): slices of the image that run() reads.
    """

    def __init__(self, network: Network, k: int, number: int, index: int, count: int) -> None:
        self.network, self.number, self.index, self.count = network, number, index, count
        self._k = k
        area = _c.Area()
        with network._busy(Call()):
            handle = self._open()
            _c.library.rfx_round_input_area(handle, area)
            _c.library.rfx_round_free(handle)
        self.needs = _slices(area)

    def _open(self) -> Any:
        handle = ctypes.c_void_p()
        Call().make(
            _c.library.rfx_round_open,
            self.network._handle,
            self._k,
            self.number,
            self.index,
            self.count,
            ctypes.byref(handle),
        )
        return handle

    def run(
        self,
        image: Any = None,
        memory: Memory = None,
        threads: int = 0,
        progress: Any = None,
        layout: Optional[str] = None,
        observer: Observer = None,
        states: Any = None,
    ) -> bytes:
        """Computes the states of this shard.

        Args:
            image: as in Network.run(), but one image; None where `needs` is empty.
            memory, threads, progress, layout, observer: as in Network.run(). `memory` includes the states.
            states: the merged states of the round before; None in the first round.

        Returns:
            The states as bytes, for Network.merge_states() in any process with this version of rfexec.

        Raises:
            UsageError: `states` are missing, or an argument is wrong.
            RefusedError: `states` are of another network, output or round, not of all shards, or were
                changed; or the image is not the one of the earlier rounds. And the exceptions of
                Network.run().
        """
        network = self.network
        address, size, kept = _block(states)
        call, out = Call(memory, threads, progress), ctypes.c_void_p()
        observe(call, observer, network.outputs)
        source: Any = None
        function: Any = _c.library.rfx_round_run_source
        if is_picture(image):
            function, argument = _c.library.rfx_round_run_file, take_picture(image, call)
        elif image is None and self.needs[0].start == self.needs[0].stop:
            argument = None
        else:
            wanted = network.inputs[0].shape
            source = Input(image, wanted, layout_of(image, wanted, layout), call.set_read)
            argument = source.raw
        with network._busy(call):
            handle = self._open()
            try:
                call.make(function, handle, address, size, argument, call.options, ctypes.byref(out))
                return _take(out)
            finally:
                _c.library.rfx_round_free(handle)
                del kept, source

    def __repr__(self) -> str:
        return f"<rfexec.Round {self.number}, shard {self.index} of {self.count} of {self.network!r}>"


class Part(Network):
    """A shard: computes a rectangle of one output and nothing else, with the bits of the full run.

    Network.part() and Network.part_rect() make it. Give its runs the same image; they read only the
    rectangle `needs` of it. A shard and its network run one at a time.

    Attributes:
        whole: the Network that the shard belongs to.
        rows, columns: slices of the output, in pixels.
        needs: (rows, columns): slices of the image that the shard reads.
    """

    def __init__(self, whole: Network, k: int, rows: slice, columns: slice, states: Any = None) -> None:
        whole._need()
        info = whole.outputs[k]
        if isinstance(whole, Part):
            raise UsageError("a part has no parts")
        if info.map is None and states is None:
            raise UsageError(f"output '{info.name}' is no map: {info.shape} has no parts")
        self.whole, self.model = whole, whole.model
        self._handle = ctypes.c_void_p()
        self._runners: set[int] = set()
        area = _area_of(whole, k, rows, columns)
        whole_tensor: tuple[slice, slice] = (slice(0, 1), slice(0, 1))
        self.rows, self.columns = whole_tensor if area is None else _slices(area)
        call, out = Call(), ctypes.byref(self._handle)
        address, size, kept = _block(states)
        with whole._busy(call):
            if states is None:
                call.make(_c.library.rfx_network_open_part, whole._handle, k, area, out)
            else:
                call.make(
                    _c.library.rfx_network_open_part_after, whole._handle, k, area, address, size, out
                )
        del kept
        whole._parts[self._handle.value or 0] = self._runners
        area = _c.Area()
        _c.library.rfx_network_input_area(self._handle, area)
        self.needs = _slices(area)
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

    def run(self, image: Any = None, *arguments: Any, **options: Any) -> dict[str, np.ndarray]:
        """Runs the shard as Network.run(). `image` may be None where `needs` is empty."""
        if image is None and self.needs[0].start == self.needs[0].stop:
            image = np.broadcast_to(np.float32(0), self._inputs[0].shape)  # is not read
        return super().run(image, *arguments, **options)

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
