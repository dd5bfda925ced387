"""Images for the C interface: arrays where they lie, and array-likes read in bands."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from typing import Any, Callable, Optional

import numpy as np

from . import _c
from ._errors import UsageError
from ._samples import is_samples, samples_of, shape_of, unmasked

LAYOUTS = ("NCHW", "NHWC")
_FLOAT = np.dtype(np.float32)


def _axes(layout: str, ndim: int) -> tuple[int, int, int]:
    """Axes of channels, rows and columns."""
    first = ndim - 3
    return (first, first + 1, first + 2) if layout == "NCHW" else (first + 2, first, first + 1)


def layout_of(image: Any, wanted: tuple[Any, ...], layout: Optional[str]) -> str:
    """The layout: as given, else "NHWC" if the shape fits channels last only, else "NCHW"."""
    if layout is not None:
        return layout
    _, channels, rows, columns = wanted
    shape = shape_of(image)[-3:]
    last = shape == (rows, columns, channels) and shape != (channels, rows, columns)
    return "NHWC" if last else "NCHW"


def size_of(image: Any, layout: Optional[str], channels: Callable[[], int]) -> tuple[int, int]:
    """Rows and columns of an array. channels: returns the network's number, which tells the layout where
    none is given: channels last if only the last axis has that length."""
    shape = shape_of(image)
    if len(shape) not in (3, 4):
        raise UsageError(f"the image has shape {shape}: three axes, or four")
    if layout is None:
        n = channels()
        layout = "NHWC" if shape[-1] == n and shape[-3] != n else "NCHW"
    rows, columns = shape[-2:] if layout == "NCHW" else shape[-3:-1]
    return int(rows), int(columns)


def images_in(image: Any, wanted: tuple[Any, ...], layout: str) -> int:
    """The number of images in an array or array-like; 1 if the shape fits no image, which Input reports."""
    _, channels, rows, columns = wanted
    one = (channels, rows, columns) if layout == "NCHW" else (rows, columns, channels)
    shape = shape_of(image)
    return shape[0] if len(shape) == 4 and shape[0] > 1 and shape[1:] == one else 1


def _check(shape: tuple[Any, ...], dtype: Any, wanted: tuple[Any, ...], layout: str) -> None:
    if layout not in LAYOUTS:
        raise UsageError(f"layout is {layout!r}: 'NCHW' or 'NHWC'")
    _, channels, rows, columns = wanted
    full = (1, channels, rows, columns) if layout == "NCHW" else (1, rows, columns, channels)
    if tuple(shape) not in (full, full[1:]):
        hint = ""
        if layout == "NCHW" and tuple(shape)[-3:] == (rows, columns, channels):
            hint = "; it has channels last: say layout='NHWC'"
        elif len(shape) == 4 and shape[0] != 1:
            hint = "; one image at a time"
        raise UsageError(
            f"the network takes {full} ({layout}; the leading 1 may be left out), the array is "
            f"{tuple(shape)}{hint}"
        )
    if dtype is not None and np.dtype(dtype) != _FLOAT:
        raise UsageError(
            f"the network takes float32 values, the array has {np.dtype(dtype)}: convert it "
            "(.astype('float32')) and scale it as the network was trained"
        )


def as_array(image: Any) -> Optional[np.ndarray]:
    """An array in memory as numpy array, without a copy; None for an array-like that is read in bands."""
    image = unmasked(image, "the image")
    if isinstance(image, np.ndarray):
        return image
    if hasattr(image, "__array_interface__"):
        return np.asarray(image)
    if hasattr(image, "__dlpack__"):
        return np.from_dlpack(image)
    if hasattr(image, "shape") and hasattr(image, "__getitem__"):
        return None
    raise UsageError(
        f"an image of type {type(image).__name__}: a path, 'synthetic:ROWSxCOLUMNS', a float32 "
        "array, or something with shape and [...] that gives such arrays"
    )


def view_of(area: _c.Area, address: int) -> np.ndarray:
    """An array [channels, rows, columns] over the values at an address; valid as long as they are."""
    steps = (area.channel_step, area.row_step, area.column_step)
    shape = (area.channels, area.rows, area.columns)
    extent = 1 + sum(step * (n - 1) for step, n in zip(steps, shape))
    flat = np.frombuffer((ctypes.c_float * extent).from_address(address), dtype=_FLOAT)
    return np.lib.stride_tricks.as_strided(flat, shape, tuple(4 * step for step in steps))


class _Blocks:
    """Reads an array-like in the blocks of rows that it stores, and keeps the last two blocks.

    So a run from top to bottom decodes each compressed chunk once.
    """

    KEPT = 2

    def __init__(self, source: Any, layout: str, wanted: tuple[Any, ...], image: int) -> None:
        self.source = source
        self.image = image  # its number in a batch
        self.layout = layout
        self.channels, self.rows = wanted[1], wanted[2]
        self.axes = _axes(layout, len(source.shape))
        self.block_rows = self._stored_rows()
        self.kept: OrderedDict[tuple[Any, ...], np.ndarray] = OrderedDict()

    def _stored_rows(self) -> int:
        """Rows of a chunk (h5py, zarr: a number per axis; dask: a tuple per axis); 0: no chunks."""
        chunks: Any = getattr(self.source, "chunks", None)
        try:
            rows = chunks[self.axes[1]]
            rows = rows if isinstance(rows, int) else max(rows)
        except (TypeError, IndexError, ValueError):
            return 0
        return int(rows) if 0 < rows < self.rows else 0

    def _get(self, y0: int, y1: int, x0: int, x1: int) -> np.ndarray:
        index: list[Any] = [self.image] * len(self.source.shape)
        channel, row, column = self.axes
        index[channel], index[row], index[column] = slice(None), slice(y0, y1), slice(x0, x1)
        block = np.asarray(unmasked(self.source[tuple(index)], "what the source gave"))
        if self.layout == "NHWC":
            block = block.transpose(2, 0, 1) if block.ndim == 3 else block
        shape = (self.channels, y1 - y0, x1 - x0)
        if block.shape != shape or block.dtype != _FLOAT:
            raise UsageError(
                f"the source gave {block.dtype} of shape {block.shape} (channels, rows, columns) "
                f"for rows {y0}..{y1} and columns {x0}..{x1}; wanted: float32 of {shape}"
            )
        return block

    def _block(self, index: int, x0: int, x1: int) -> np.ndarray:
        key = (index, x0, x1)
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        while len(self.kept) >= self.KEPT:
            self.kept.popitem(last=False)
        y0 = index * self.block_rows
        self.kept[key] = self._get(y0, min(y0 + self.block_rows, self.rows), x0, x1)
        return self.kept[key]

    def fill(self, area: _c.Area, address: int) -> None:
        out = view_of(area, address)
        y, end, x0, x1 = area.row, area.row + area.rows, area.column, area.column + area.columns
        if self.block_rows == 0:
            out[...] = self._get(y, end, x0, x1)
            return
        while y < end:
            index, inside = divmod(y, self.block_rows)
            block = self._block(index, x0, x1)
            n = min(end - y, block.shape[1] - inside)
            out[:, y - area.row : y - area.row + n] = block[:, inside : inside + n]
            y += n


def _lies_well(array: np.ndarray, layout: str) -> bool:
    """Whether C can read the array where it lies: strides of whole floats, not all 0."""
    steps = [array.strides[axis] for axis in _axes(layout, array.ndim)]
    return array.flags.aligned and not any(step % 4 for step in steps) and any(steps)


class Input:
    """A struct rfx_source and the objects that must live as long as it.

    number: the number of the image in a batch; None: not a batch.
    """

    def __init__(
        self,
        image: Any,
        wanted: tuple[Any, ...],
        layout: str,
        set_read: Callable[[Callable[..., Any]], tuple[Any, ...]],
        number: Optional[int] = None,
    ) -> None:
        self.raw = _c.Source(size=ctypes.sizeof(_c.Source))
        self.array: Optional[np.ndarray] = None
        if not is_samples(image):
            self.array = as_array(image)
        if self.array is None:
            image = samples_of(image, wanted[1], layout)
        elif self.array.dtype != _FLOAT and is_samples(self.array):
            image, self.array = samples_of(self.array, wanted[1], layout), None
        source = image if self.array is None else self.array
        shape = tuple(source.shape)
        _check(shape if number is None else shape[1:], getattr(source, "dtype", None), wanted, layout)
        if self.array is not None and number is not None:
            self.array = self.array[number]
        if self.array is not None and not _lies_well(self.array, layout):
            image, self.array, number = self.array, None, None
        if self.array is None:
            blocks = _Blocks(image, layout, wanted, number or 0)
            self.raw.read, self.raw.user = set_read(blocks.fill)
        else:
            self._point(self.array, layout)

    def _point(self, array: np.ndarray, layout: str) -> None:
        channel, row, column = _axes(layout, array.ndim)
        self.raw.values = array.ctypes.data
        self.raw.channel_step = array.strides[channel] // 4
        self.raw.row_step = array.strides[row] // 4
        self.raw.column_step = array.strides[column] // 4
