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
    mean and std in that order. max_pixels: without a budget, rows times columns of the largest picture that is decoded whole.
    """

    path: Union[str, os.PathLike]
    page: int = 0
    channels: Optional[Sequence[int]] = None
    orient: bool = True
    scale: Optional[float] = None
    mean: Union[None, float, Sequence[float]] = None
    std: Union[None, float, Sequence[float]] = None
    bgr: bool = False
    max_pixels: int = 0
    raw: bool = False

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
        if self.channels is not None:
            channels = [c_number(n, "a channel", 32) for n in self.channels]
            if not channels:
                raise UsageError("channels is empty: numbers of bands, or None for all")
            options.channels = (ctypes.c_int * len(channels))(*channels)
            options.n_channels = len(channels)


def _numbers(name: str, given: Any) -> list[float]:
    values = [given] if isinstance(given, numbers.Real) else list(given)
    if not values:
        raise UsageError(f"{name} is empty: one number, or one for each channel")
    return values


def is_picture(image: Any) -> bool:
    """Whether it names a file, so that C reads it."""
    return isinstance(image, (str, os.PathLike, Picture))


def take_picture(picture: Any, call: Call) -> Optional[bytes]:
    """The name for C; what a Picture says goes to the call's options."""
    if picture is None:
        return None
    if isinstance(picture, Picture):
        picture._set(call)
        picture = picture.path
    return c_name(picture, "picture")


def picture_size(picture: Union[str, os.PathLike, Picture]) -> tuple[int, int, int]:
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
