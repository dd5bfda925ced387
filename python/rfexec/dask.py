"""Outputs of networks as dask arrays, of which every chunk is a part of one run.

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

from ._errors import UsageError
from ._inputs import _axes, _check, as_array
from ._models import Model, model_bytes
from ._network import Memory, Network
from ._pictures import Picture, is_picture, picture_size
from ._sizes import parse_bytes

__all__ = ["map_image"]
_CHUNK_BYTES = 64 << 20
_KEPT = 2  # networks whose opened copies wait for the next task


@dataclass(frozen=True)
class _Opened:
    """What a worker opens: the arguments of rfexec.open, and the hash of a model that is not built
    in, which tells it from others of its name."""

    model: Union[str, bytes]
    digest: str
    size: tuple[int, int]
    conv: str
    seed: int
    pad_to: int
    padding: str


@dataclass(frozen=True)
class _Run:
    """What is the same for all chunks."""

    output: str
    memory: Memory
    threads: int
    layout: str
    spill: Optional[str]


# ---- in the workers: networks stay open between tasks ----------------------------------------

_idle: OrderedDict[tuple[Any, ...], list[Network]] = OrderedDict()
_lock = threading.Lock()


def _after_fork() -> None:
    """Another thread may have held it; networks that wait are the child's too."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _file_identity(name: Union[str, bytes]) -> str:
    """Tells a file from what was there before; "": no file."""
    try:
        seen = os.stat(name) if isinstance(name, str) else None
    except OSError:
        return ""
    return "" if seen is None else f"{seen.st_mtime_ns} {seen.st_size}"


@functools.lru_cache(maxsize=8)
def _digest(name: Union[str, bytes], seen: str) -> str:
    """Of a file as it was when it was `seen`; "": it cannot be read, as opening it will say."""
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
    """A network for this task alone: each runs one at a time, and tasks of a worker's threads run
    side by side, so there are as many as ran at once."""
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
            opened.model, opened.size, opened.conv, opened.seed, opened.pad_to, opened.padding
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
    """An image, (channels, rows, columns), of which some blocks are there and nothing else."""

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


def _make(
    opened: _Opened, run: _Run, rows: slice, columns: slice, image: Any, places: list[Any], blocks: list[Any]
) -> np.ndarray:
    """One chunk. With places, the image comes as blocks that lie there, else as it was given."""
    with _network(opened) as net:
        part = net.part_rect(rows, columns, run.output)
        layout = run.layout
        if places:
            image, layout = _Window(net.inputs[0].shape[1:], places, blocks, layout), "NCHW"
        maps = part.run(image, run.memory, run.threads, layout=layout, spill=run.spill)
    return maps[run.output]


# ---- where the graph is made -----------------------------------------------------------------

def _everywhere(path: Union[str, os.PathLike[str]]) -> str:
    """The path of a file for workers that run in other folders; other names stay."""
    name = os.fsdecode(path)
    return os.path.abspath(name) if os.path.exists(name) else name


def _describe(model: Model, size: tuple[int, int], options: dict[Any, Any]) -> _Opened:
    if isinstance(model, (str, os.PathLike)):
        name, digest = os.fsdecode(model), ""
        if os.sep in name or "." in name:  # others are built in, whatever files there are
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
    """Rows and columns, as map_image says; all but the last are equal, so that zarr takes them."""
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


def _refuse_repeats(net: Network, output: str, chunks: tuple[Any, ...]) -> None:
    """In words: chunks behind a layer that sees all of a map would each compute all before it."""
    for layer in net.part(1, 1, output).analyze():
        if layer.field is None:
            raise UsageError(
                f"output '{output}' in {len(chunks[0]) * len(chunks[1])} chunks: layer '{layer.name}' "
                f"({layer.op}) sees all of a map, so every chunk would compute all that comes before. "
                "One chunk (chunks=-1) is one run inside the budget, as Network.run; the program's "
                "`run --part I/N` and `merge` share that work out in rounds, as does rfexec-mpi; "
                "recompute=True has every chunk compute it"
            )


class _Image:
    """Where tasks get the image from: `value`, or blocks of it."""

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
        else:  # what a file holds may change under its name
            self.value, self.token = image, uuid.uuid4().hex

    def check(self, net: Network) -> None:
        if not isinstance(self.value, Picture):
            _check(self.shape, self.dtype, net.inputs[0].shape, self.layout)

    def _index(self, rows: slice, columns: slice) -> tuple[Any, ...]:
        index = [slice(None)] * len(self.shape)
        index[self.axes[1]], index[self.axes[2]] = rows, columns
        return tuple(index)

    def take(self, needs: tuple[slice, slice], key: tuple[Any, ...], graph: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
        """Places and blocks of what a chunk needs; parts of dask's blocks become tasks."""
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
) -> da.Array:
    """An output of a network as a dask array (1, channels, rows, columns) of its type: its chunks are
    parts of one run, with exactly its bits, each made by a task of its own.

    model, conv, seed, pad_to, padding: as for rfexec.open; a model's path is opened by every worker,
    which refuses another file under that name, and stays open for its next tasks; bytes and
    ModelProtos go there with the graph. image: as for Network.run; what a chunk needs of it, halo
    and all, follows from the network. Pictures and array-likes (zarr) are read by the tasks; of a
    dask array a task depends on the blocks that it needs alone; slices of a numpy array are part of
    the graph. memory, threads: of each task; a worker runs as many as it has threads, and what they
    are given and make comes on top.

    chunks: of the output's rows and columns, as dask takes them: 512, (512, 1024), -1 for one, ...;
    None: equal ones (but for the last), of which neither the square of the image that one stands
    for, without its halo, nor the chunk itself takes more than about 64 MiB. output: its name; None:
    the first.

    Where a layer before the output sees all of a map (global pools, instance norms, attention),
    every chunk computes all that comes before that: more than one chunk is refused unless
    `recompute` says that this is wanted.
    """
    parse_bytes(memory)
    picture = _Image(image, layout)
    options = {"conv": conv, "seed": seed, "pad_to": pad_to, "padding": padding}
    opened = _describe(model, picture.size, options)
    with _network(opened) as net:
        picture.check(net)
        info = net.outputs[net._number_of(output)]
        shape = net.part(1, 1, info.name).outputs[0].shape  # or raises: no map
        if info.map is None or shape != (1, *info.map):
            raise UsageError(
                f"output '{info.name}' is declared as {shape}, not as (1, channels, rows, columns); "
                "Network.run and Network.bands give it"
            )
        if chunks is None:
            chunks = _default_chunks(net.inputs[0].shape, shape)
        chunks = _check_chunks(chunks, shape)
        if len(chunks[0]) * len(chunks[1]) > 1 and not recompute:
            _refuse_repeats(net, info.name, chunks)
        run = _Run(info.name, memory, threads, layout, None if spill is None else os.fspath(spill))
        token = tokenize(opened, run, picture.token, chunks)
        name = "rfexec-" + token
        model_key, image_key = "rfexec-model-" + token, "rfexec-image-" + token
        graph: dict[Any, Any] = {model_key: opened, image_key: picture.value}
        for i, rows in enumerate(_pieces(chunks[0])):
            for j, columns in enumerate(_pieces(chunks[1])):
                key = (name, 0, 0, i, j)
                places: list[Any] = []
                blocks: list[Any] = []
                if picture.value is None:
                    needs = net.part_rect(rows, columns, info.name).needs
                    places, blocks = picture.take(needs, key, graph)
                graph[key] = (_make, model_key, run, rows, columns, image_key, places, blocks)
    inputs: Any = [] if picture.lazy is None else [picture.lazy]
    layers = HighLevelGraph.from_collections(name, graph, dependencies=inputs)
    return da.Array(layers, name, ((shape[0],), (shape[1],), *chunks), dtype=info.dtype)
