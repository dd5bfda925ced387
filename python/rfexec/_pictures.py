"""Image files and how they are read."""

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
    """An image file, or an array of samples, and how it is read. Usable wherever a path is.

    A sample becomes the value (sample * scale - mean) / std. 8-bit samples are used as they are, 16-bit
    samples divided by 257, or unchanged with `raw`. docs/pictures.md has the details.

    Attributes:
        path: the file's path; or a uint8 or uint16 array, for which only scale, raw, mean, std and bgr
            count.
        page: the page of a TIFF or the level of a slide, as `rfexec info` numbers them.
        channels: bands to read, counted from 1, in the order of the network's channels; None: all but
            alpha.
        orient: True: read upright, as EXIF data or the TIFF tag say; False: as stored.
        scale: factor of the samples; None: 1/255, or 1 with `raw`.
        mean, std: one number, or one for each channel. None: ImageNet's for networks of 1 or 3
            channels, else 0 and 1; also 0 and 1 with `raw`.
        bgr: True: blue first; mean and std are in that order too.
        max_pixels: without a budget, the most pixels of an image that must be decoded whole; 0: the
            default of 100 million.
        raw: True: samples as they are stored.
        region: (rows, columns), two slices of step 1: the part of the image that is read as if it were
            the whole.
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
    """First index and length of a slice."""
    first = 0 if wanted.start is None else c_number(wanted.start, what)
    end = -1 if wanted.stop is None else c_number(wanted.stop, what)
    if wanted.step not in (None, 1) or not 0 <= first < end:
        raise UsageError(f"the {what} are {wanted}: a slice from 0 on, with both ends, of step 1")
    return first, end - first


def is_picture(image: Any) -> bool:
    """Whether the image is a file name, so that the C library reads it."""
    if isinstance(image, Picture):
        return isinstance(image.path, (str, os.PathLike))
    return isinstance(image, (str, os.PathLike))


def take_picture(picture: Any, call: Call) -> Optional[bytes]:
    """Returns the name for C and copies a Picture's settings to the call's options."""
    if picture is None:
        return None
    if isinstance(picture, Picture):
        picture._set(call)
        picture = picture.path
    call.path = c_name(picture, "picture")
    return call.path


def picture_size(picture: Union[str, os.PathLike[str], Picture]) -> tuple[int, int, int]:
    """Returns (rows, columns, channels) of an image file as it would be read.

    Only the header is read. Raises RefusedError if the file cannot be read.
    """
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
