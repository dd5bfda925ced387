"""Outputs of networks as dask arrays whose chunks are shards of one run.

    import rfexec.dask
    maps = rfexec.dask.map_image("net.onnx", "slide.tif", memory="512MiB")

`import rfexec` alone does not import dask.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import operator
import os
import threading
import uuid
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Iterator, Optional, Union

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ._errors import RefusedError, UsageError
from ._inputs import _axes, _check, as_array
from ._models import Model, model_bytes
from ._network import Memory, Network
from ._parts import needs_after
from ._pictures import Picture, is_picture, picture_size
from ._sizes import parse_bytes

__all__ = ["map_image"]
_CHUNK_BYTES = 64 << 20
_MERGED = 8  # states that one task adds up
_KEPT = 2  # models whose networks stay open for the next task


@dataclass(frozen=True)
class _Opened:
    """The arguments of rfexec.open for a worker, and the hash of the model, which detects another file under
    the same name ("" for built-in networks).
    """

    model: Union[str, bytes]
    digest: str
    size: tuple[int, int]
    conv: str
    seed: int
    pad_to: int
    padding: str
    int8: str
    dequantize: bool


@dataclass(frozen=True)
class _Run:
    """The settings that all chunks share."""

    output: str
    memory: Memory
    threads: int
    layout: str
    spill: Optional[str]


# ---- in the workers --------------------------------------------------------------------------

_idle: OrderedDict[tuple[Any, ...], list[Network]] = OrderedDict()
_lock = threading.Lock()


def _after_fork() -> None:
    """In a child process: another thread may have held the lock. Idle networks belong to the child too."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _file_identity(name: Union[str, bytes]) -> str:
    """A text that changes when the file changes; "": no file."""
    try:
        seen = os.stat(name) if isinstance(name, str) else None
    except OSError:
        return ""
    return "" if seen is None else f"{seen.st_mtime_ns} {seen.st_size}"


@functools.lru_cache(maxsize=8)
def _digest(name: Union[str, bytes], seen: str) -> str:
    """The hash of a file as it was when it was `seen`; "" if it cannot be read, which opening reports."""
    digest = hashlib.sha256()
    try:
        with open(name, "rb") as file:
            while data := file.read(1 << 20):
                digest.update(data)
    except OSError:
        return ""
    return digest.hexdigest()


@contextlib.contextmanager
def _network(opened: _Opened) -> Iterator[Network]:
    """A network for this task alone.

    A network runs one call at a time, and a worker's threads run several tasks, so there are as many
    networks as tasks ran at once.
    """
    seen = _file_identity(opened.model) if opened.digest else ""
    key = (opened, seen)
    with _lock:
        waiting = _idle.get(key)
        net = waiting.pop() if waiting else None
    if net is None:
        if seen and _digest(opened.model, seen) != opened.digest:
            raise UsageError(
                f"model {opened.model!r} is not the file of that name for which the array was made"
            )
        net = Network(
            opened.model,
            opened.size,
            opened.conv,
            opened.seed,
            opened.pad_to,
            opened.padding,
            int8=opened.int8,
            dequantize=opened.dequantize,
        )
    try:
        yield net
    finally:
        with _lock:
            _idle.setdefault(key, []).append(net)
            _idle.move_to_end(key)
            while len(_idle) > _KEPT:
                _idle.popitem(last=False)


class _Window:
    """An image (channels, rows, columns) of which only some blocks exist."""

    dtype = np.dtype(np.float32)

    def __init__(self, shape: tuple[int, ...], places: list[Any], blocks: list[Any], layout: str) -> None:
        self.shape = shape
        self.blocks = []
        for (y0, y1, x0, x1), block in zip(places, blocks):
            block = np.asarray(block)
            block = block[0] if block.ndim == 4 else block
            block = block.transpose(2, 0, 1) if layout == "NHWC" else block
            if block.shape != (shape[0], y1 - y0, x1 - x0) or block.dtype != self.dtype:
                raise UsageError(
                    f"rows {y0}..{y1}, columns {x0}..{x1} of the image came as {block.dtype} of shape "
                    f"{block.shape} (channels, rows, columns); wanted: float32 of "
                    f"{(shape[0], y1 - y0, x1 - x0)}"
                )
            self.blocks.append((y0, y1, x0, x1, block))

    def __getitem__(self, index: tuple[Any, ...]) -> np.ndarray:
        _, rows, columns = index
        height, width = rows.stop - rows.start, columns.stop - columns.start
        left, out = height * width, np.empty((self.shape[0], height, width), self.dtype)
        for y0, y1, x0, x1, block in self.blocks:
            ya, yb = max(y0, rows.start), min(y1, rows.stop)
            xa, xb = max(x0, columns.start), min(x1, columns.stop)
            if ya < yb and xa < xb:
                to = out[:, ya - rows.start : yb - rows.start, xa - columns.start : xb - columns.start]
                to[...] = block[:, ya - y0 : yb - y0, xa - x0 : xb - x0]
                left -= (yb - ya) * (xb - xa)
        if left:
            raise RuntimeError(f"rfexec.dask: {left} pixels of {rows}, {columns} are not there")
        return out


def _image_of(
    net: Network, run: _Run, image: Any, places: list[Any], blocks: list[Any]
) -> tuple[Any, str]:
    """The image of a task and its layout. With places, it is given as blocks at these places."""
    if not places:
        return image, run.layout
    return _Window(net.inputs[0].shape[1:], places, blocks, run.layout), "NCHW"


def _make(
    opened: _Opened,
    run: _Run,
    rows: slice,
    columns: slice,
    states: Optional[bytes],
    image: Any,
    places: list[Any],
    blocks: list[Any],
) -> np.ndarray:
    """Computes one chunk, from the merged states of the last round if there are rounds."""
    with _network(opened) as net:
        part = net.part_rect(rows, columns, run.output, states)
        image, layout = _image_of(net, run, image, places, blocks)
        maps = part.run(image, run.memory, run.threads, layout=layout, spill=run.spill)
    return maps[run.output]


def _run_round(
    opened: _Opened,
    run: _Run,
    shard: tuple[int, int, int],
    states: Optional[bytes],
    image: Any,
    places: list[Any],
    blocks: list[Any],
) -> bytes:
    """Computes the states of a shard (round, index, count), from those of the round before."""
    with _network(opened) as net:
        part = net.round(*shard, run.output)
        image, layout = _image_of(net, run, image, places, blocks)
        return part.run(image, run.memory, run.threads, layout=layout, states=states)


def _merge(opened: _Opened, states: list[bytes]) -> bytes:
    """Adds up the states of some shards."""
    with _network(opened) as net:
        return net.merge_states(states)


# ---- where the graph is made -----------------------------------------------------------------

def _everywhere(path: Union[str, os.PathLike[str]]) -> str:
    """The absolute path of a file, for workers in other folders; other names unchanged."""
    name = os.fsdecode(path)
    return os.path.abspath(name) if os.path.exists(name) else name


def _describe(model: Model, size: tuple[int, int], options: dict[Any, Any]) -> _Opened:
    if isinstance(model, (str, os.PathLike)):
        name, digest = os.fsdecode(model), ""
        if os.sep in name or "." in name:  # all other names are built-in networks
            name = _everywhere(name)
            seen = _file_identity(name)
            digest = _digest(name, seen) if seen else ""
        return _Opened(name, digest, size, **options)
    data = model_bytes(model).tobytes()
    return _Opened(data, hashlib.sha256(data).hexdigest(), size, **options)


def _pieces(sizes: tuple[int, ...]) -> list[slice]:
    ends = np.cumsum((0, *sizes)).tolist()
    return [slice(a, b) for a, b in zip(ends, ends[1:])]


def _default_chunks(image: tuple[Any, ...], output: tuple[Any, ...]) -> tuple[int, int]:
    """Rows and columns of a chunk, as map_image says; all but the last are equal, as zarr needs."""
    _, channels, rows, columns = image
    there = max(1, math.ceil(output[1] * output[2] * output[3] / (rows * columns)))
    side = max(1, math.isqrt(_CHUNK_BYTES // (4 * max(channels, there))))
    return tuple(-(-n // -(-m // side)) for n, m in zip(output[2:], (rows, columns)))


def _check_chunks(chunks: Any, shape: tuple[Any, ...]) -> tuple[tuple[int, ...], ...]:
    try:
        sizes: tuple[tuple[int, ...], ...] = da.core.normalize_chunks(chunks, shape[2:], dtype=np.float32)
        if all(n > 0 for axis in sizes for n in axis):
            return sizes
        why = "all must be positive"
    except (TypeError, ValueError, ZeroDivisionError) as failure:
        why = str(failure)
    raise UsageError(
        f"chunks is {chunks!r}: of {shape[2]} rows and {shape[3]} columns, such as 512, (512, 1024) "
        f"or ((100, 200), -1) ({why})"
    )


def _count_rounds(net: Network, output: str, chunks: tuple[Any, ...]) -> int:
    """The rounds before the chunks. Raises UsageError if every chunk would compute all layers before one
    that sees a whole feature map.
    """
    try:
        return net.rounds(output)
    except RefusedError as failure:
        raise UsageError(
            f"output '{output}' in {len(chunks[0]) * len(chunks[1])} chunks: every chunk would compute "
            f"all layers before one that sees a whole feature map: {failure}. One chunk (chunks=-1) is "
            "one run inside the budget, as Network.run; recompute=True has every chunk compute them"
        ) from None


class _Image:
    """The image of the tasks: `value`, or blocks of it."""

    def __init__(self, image: Any, layout: str) -> None:
        self.layout, self.value, self.lazy = layout, None, None
        self.array: Optional[np.ndarray] = None
        if is_picture(image):
            picture = image if isinstance(image, Picture) else Picture(image)
            path = _everywhere(picture.path)
            self.value = replace(picture, path=path)
            self.size = picture_size(self.value)[:2]
            self.token = tokenize(self.value, _file_identity(path))
            return
        self.lazy = image if isinstance(image, da.Array) else None
        self.array = None if self.lazy is not None else as_array(image)
        given = image if self.array is None else self.array
        if len(given.shape) not in (3, 4):
            raise UsageError(f"the image has shape {tuple(given.shape)}: three axes, or four")
        self.axes = _axes(layout, len(given.shape))
        self.size = (given.shape[self.axes[1]], given.shape[self.axes[2]])
        self.shape, self.dtype = tuple(given.shape), getattr(given, "dtype", None)
        if self.lazy is not None:
            if any(math.isnan(n) for n in self.shape):
                raise UsageError("the image has chunks of unknown sizes: compute_chunk_sizes() first")
            self.lazy = self.lazy.rechunk({self.axes[0]: -1})
            self.token = tokenize(self.lazy)
        elif self.array is not None:
            self.token = tokenize(self.array)
        else:  # its data may change, so each call gets a new token
            self.value, self.token = image, uuid.uuid4().hex

    def check(self, net: Network) -> None:
        if not isinstance(self.value, Picture):
            _check(self.shape, self.dtype, net.inputs[0].shape, self.layout)

    def _index(self, rows: slice, columns: slice) -> tuple[Any, ...]:
        index = [slice(None)] * len(self.shape)
        index[self.axes[1]], index[self.axes[2]] = rows, columns
        return tuple(index)

    def share(self, pieces: int) -> None:
        """Makes an array in memory a dask array, so that several tasks depend on one copy of its rows."""
        if self.array is None:
            return
        axis = self.axes[1]
        sizes = {i: -1 for i in range(self.array.ndim)}
        sizes[axis] = -(-self.array.shape[axis] // pieces)
        self.lazy, self.array = da.from_array(self.array, chunks=sizes), None

    def take(self, needs: tuple[slice, slice], key: tuple[Any, ...], graph: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
        """Places and blocks that a chunk needs; parts of dask's blocks become tasks of the graph."""
        rows, columns = needs
        if self.array is not None:
            place = (rows.start, rows.stop, columns.start, columns.stop)
            return [place], [self.array[self._index(rows, columns)]]
        assert self.lazy is not None
        places, blocks = [], []
        chunks = self.lazy.chunks
        for i, y in enumerate(_pieces(chunks[self.axes[1]])):
            ya, yb = max(y.start, rows.start), min(y.stop, rows.stop)
            for j, x in enumerate(_pieces(chunks[self.axes[2]])) if ya < yb else ():
                xa, xb = max(x.start, columns.start), min(x.stop, columns.stop)
                if xa >= xb:
                    continue
                numbers = [0] * len(self.shape)
                numbers[self.axes[1]], numbers[self.axes[2]] = i, j
                block: tuple[Any, ...] = (self.lazy.name, *numbers)
                if (ya, yb, xa, xb) != (y.start, y.stop, x.start, x.stop):
                    inside = self._index(
                        slice(ya - y.start, yb - y.start), slice(xa - x.start, xb - x.start)
                    )
                    part = ("part-of-" + key[0], *key[1:], i, j)
                    graph[part] = (operator.getitem, block, inside)
                    block = part
                places.append((ya, yb, xa, xb))
                blocks.append(block)
        return places, blocks


def _add_rounds(
    graph: dict[Any, Any], net: Network, picture: _Image, run: _Run, keys: tuple[str, str, str], shards: int, rounds: int
) -> Any:
    """Adds the tasks of all rounds to the graph. Returns the key of the merged states of the last one.

    keys: those of the model and the image, and the token of the tasks' names.
    """
    model_key, image_key, token = keys
    merged: Any = None
    for number in range(1, rounds + 1):
        level: list[Any] = []
        for index in range(1, shards + 1):
            key: tuple[Any, ...] = ("rfexec-states-" + token, number, index)
            places: list[Any] = []
            blocks: list[Any] = []
            if picture.value is None:
                needs = net.round(number, index, shards, run.output).needs
                places, blocks = picture.take(needs, key, graph)
            shard = (number, index, shards)
            graph[key] = (_run_round, model_key, run, shard, merged, image_key, places, blocks)
            level.append(key)
        depth = 0
        while depth == 0 or len(level) > 1:
            groups = [level[i : i + _MERGED] for i in range(0, len(level), _MERGED)]
            level = [("rfexec-merged-" + token, number, depth, i) for i in range(len(groups))]
            for key, group in zip(level, groups):
                graph[key] = (_merge, model_key, group)
            depth += 1
        merged = level[0]
    return merged


def map_image(
    model: Model,
    image: Any,
    memory: Memory = None,
    *,
    chunks: Any = None,
    output: Optional[str] = None,
    threads: int = 1,
    layout: str = "NCHW",
    conv: str = "direct",
    seed: int = 0,
    pad_to: int = 0,
    padding: str = "reflect",
    spill: Union[None, str, os.PathLike[str]] = None,
    recompute: bool = False,
    shards: Optional[int] = None,
    int8: str = "ort",
    dequantize: bool = False,
) -> da.Array:
    """An output of a network as a lazy dask array (1, channels, rows, columns).

    Each chunk is a shard of one run and is computed by a task of its own, with the bits of one run. The
    halo that a chunk needs of the image follows from the network. Behind layers that see a whole feature
    map (global pools, instance norms) rounds of states come first (Network.rounds): the tasks of a round
    share its work, and their states are added up in a tree.

    Args:
        model, conv, seed, pad_to, padding, int8, dequantize: as in rfexec.open(). Each worker opens a path
            itself, keeps the network for its next tasks, and refuses another file under that name. Bytes and
            ModelProtos are sent with the graph.
        image: as in Network.run(). Tasks read files and array-likes (zarr) themselves. With a dask array,
            a task depends only on the blocks that it needs. Slices of a numpy array become part of the
            graph.
        memory, threads: of each task. A worker runs as many tasks as it has threads. The blocks that a
            task receives and its result come on top.
        chunks: of the output's rows and columns, as in dask: 512, (512, 1024), -1 for one chunk. None:
            equal chunks. Neither a chunk nor the square of the image that it stands for, without halo,
            takes more than about 64 MiB.
        output: the output's name; None: the first.
        layout: "NCHW" or "NHWC", as in Network.run().
        spill: as in Network.plan().
        recompute: no rounds: every chunk computes all layers before those that see a whole feature map.
            The only way to have several chunks behind attention over a whole map.
        shards: tasks of each round; None: as many as there are chunks from top to bottom.

    Returns:
        A dask array of the output's type.

    Raises:
        UsageError: an argument is wrong, the output is no feature map, or it has several chunks behind
            attention over a whole map, without `recompute`.
        RefusedError: the model or image cannot be read.
    """
    parse_bytes(memory)
    picture = _Image(image, layout)
    options = {"conv": conv, "seed": seed, "pad_to": pad_to, "padding": padding}
    options |= {"int8": int8, "dequantize": dequantize}
    opened = _describe(model, picture.size, options)
    with _network(opened) as net:
        picture.check(net)
        info = net.outputs[net._number_of(output)]
        shape = net.part(1, 1, info.name).outputs[0].shape  # UsageError: no feature map
        if info.map is None or shape != (1, *info.map):
            raise UsageError(
                f"output '{info.name}' is declared as {shape}, not as (1, channels, rows, columns); "
                "Network.run and Network.bands give it"
            )
        if chunks is None:
            chunks = _default_chunks(net.inputs[0].shape, shape)
        chunks = _check_chunks(chunks, shape)
        rounds = 0
        if len(chunks[0]) * len(chunks[1]) > 1 and not recompute:
            rounds = _count_rounds(net, info.name, chunks)
        shards = len(chunks[0]) if shards is None else shards
        if shards < 1:
            raise UsageError(f"shards is {shards}: at least 1")
        if rounds:
            picture.share(shards)
        run = _Run(info.name, memory, threads, layout, None if spill is None else os.fspath(spill))
        token = tokenize(opened, run, picture.token, chunks, rounds and shards)
        name = "rfexec-" + token
        model_key, image_key = "rfexec-model-" + token, "rfexec-image-" + token
        graph: dict[Any, Any] = {model_key: opened, image_key: picture.value}
        states = _add_rounds(graph, net, picture, run, (model_key, image_key, token), shards, rounds)
        k = net._number_of(info.name)
        for i, rows in enumerate(_pieces(chunks[0])):
            for j, columns in enumerate(_pieces(chunks[1])):
                key = (name, 0, 0, i, j)
                places: list[Any] = []
                blocks: list[Any] = []
                if picture.value is None:
                    if rounds:
                        needs = needs_after(net, k, rows, columns)
                    else:
                        needs = net.part_rect(rows, columns, info.name).needs
                    places, blocks = picture.take(needs, key, graph)
                graph[key] = (_make, model_key, run, rows, columns, states, image_key, places, blocks)
    inputs: Any = [] if picture.lazy is None else [picture.lazy]
    layers = HighLevelGraph.from_collections(name, graph, dependencies=inputs)
    return da.Array(layers, name, ((shape[0],), (shape[1],), *chunks), dtype=info.dtype)
