"""Picture files, and how they are read."""

from __future__ import annotations

import ctypes
import numbers
import os
from dataclasses import dataclass
from typing import Any, Optional, Sequence, Union

from . import _c
from ._call import Call
from ._errors import UsageError
from ._sizes import c_name, c_number


@dataclass(frozen=True)
class Picture:
    """A picture file and how it is read: wherever a path is taken, one of these is.

    page: of a TIFF, or level of a slide, as `rfexec info` numbers them. channels: bands of a TIFF or
    .npy file, from 1, in the order of the network's; None: all but alpha. orient: turned as EXIF
    data or TIFF's tag say. Samples become (sample * scale - mean) / std: those of 8 bits as they are,
    those of 16 bits divided by 257, or with `raw` as they are stored. mean and std are one number, or
    one for each channel of the network. By default scale is 1/255 and mean and std are ImageNet's
    (networks of 1 or 3 channels; others: 0 and 1); with `raw` they are 1, 0 and 1. bgr: blue first,
    mean and std in that order. max_pixels: without a budget, rows times columns of the largest
    picture that is decoded whole. region: rows and columns, two slices, that are read alone, as if
    they were all of the picture.

    In the place of the path there may be a uint8 or uint16 array, of which scale, raw, mean, std and
    bgr are used.
    """

    path: Any
    page: int = 0
    channels: Optional[Sequence[int]] = None
    orient: bool = True
    scale: Optional[float] = None
    mean: Union[None, float, Sequence[float]] = None
    std: Union[None, float, Sequence[float]] = None
    bgr: bool = False
    max_pixels: int = 0
    raw: bool = False
    region: Optional[tuple[slice, slice]] = None

    def _set(self, call: Call) -> None:
        options = call.options
        options.page = c_number(self.page, "page")
        options.max_pixels = c_number(self.max_pixels, "max_pixels")
        options.bgr, options.as_stored = int(self.bgr), int(not self.orient)
        options.raw = int(self.raw)
        if self.scale is not None or self.raw:
            options.scale = 1.0 if self.scale is None else self.scale
        for name in ("mean", "std"):
            given = getattr(self, name)
            if given is not None:
                values = _numbers(name, given)
                setattr(options, name, (ctypes.c_float * len(values))(*values))
                setattr(options, "n_" + name, len(values))
        if self.region is not None:
            rows, columns = self.region
            options.region_row, options.region_rows = _ends(rows, "region's rows")
            options.region_column, options.region_columns = _ends(columns, "region's columns")
        if self.channels is not None:
            channels = [c_number(n, "a channel", 32) for n in self.channels]
            if not channels:
                raise UsageError("channels is empty: numbers of bands, or None for all")
            options.channels = (ctypes.c_int * len(channels))(*channels)
            options.n_channels = len(channels)


def _numbers(name: str, given: Any) -> list[float]:
    values: list[float] = [float(given)] if isinstance(given, numbers.Real) else list(given)
    if not values:
        raise UsageError(f"{name} is empty: one number, or one for each channel")
    return values


def _ends(wanted: slice, what: str) -> tuple[int, int]:
    """First and count of a slice."""
    first = 0 if wanted.start is None else c_number(wanted.start, what)
    end = -1 if wanted.stop is None else c_number(wanted.stop, what)
    if wanted.step not in (None, 1) or not 0 <= first < end:
        raise UsageError(f"the {what} are {wanted}: a slice from 0 on, with both ends, of step 1")
    return first, end - first


def is_picture(image: Any) -> bool:
    """Whether it names a file, so that C reads it."""
    if isinstance(image, Picture):
        return isinstance(image.path, (str, os.PathLike))
    return isinstance(image, (str, os.PathLike))


def take_picture(picture: Any, call: Call) -> Optional[bytes]:
    """The name for C; what a Picture says goes to the call's options."""
    if picture is None:
        return None
    if isinstance(picture, Picture):
        picture._set(call)
        picture = picture.path
    call.path = c_name(picture, "picture")
    return call.path


def picture_size(picture: Union[str, os.PathLike[str], Picture]) -> tuple[int, int, int]:
    """Rows, columns and channels of a picture file as it would be read; reads its header only."""
    rows, columns, channels = ctypes.c_int64(), ctypes.c_int64(), ctypes.c_int64()
    call = Call()
    call.make(
        _c.library.rfx_picture_size_with,
        take_picture(picture, call),
        call.options,
        ctypes.byref(rows),
        ctypes.byref(columns),
        ctypes.byref(channels),
    )
    return rows.value, columns.value, channels.value
