"""Arrays of samples, converted to values in blocks, never as a whole."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ._errors import UsageError
from ._pictures import Picture, _numbers

_FLOAT = np.dtype(np.float32)
_MEAN = (0.485, 0.456, 0.406)  # of ImageNet, as in the C library
_STD = (0.229, 0.224, 0.225)


def unmasked(array: Any, what: str) -> Any:
    """The data of a masked array without masked elements; other objects unchanged. Raises
    UsageError for masked elements."""
    masked = sys.modules.get("numpy.ma")  # a masked array exists only if numpy.ma was imported
    if masked is None or not isinstance(array, masked.MaskedArray):
        return array
    if masked.is_masked(array):
        raise UsageError(
            f"{what} is a masked array, and some of it is masked: .filled(value) says what stands there"
        )
    return array.data


def _type_of(array: Any) -> Any:
    try:
        return np.dtype(array.dtype)
    except (AttributeError, TypeError):
        return None


def _is_integer(dtype: Any) -> bool:
    return dtype is not None and dtype.kind == "u" and dtype.itemsize in (1, 2)


def is_samples(image: Any) -> bool:
    """Whether the elements need a conversion: uint8, uint16, floats of the other byte order, or a
    Picture of an array."""
    if isinstance(image, Picture):
        return True
    dtype = _type_of(image)
    return _is_integer(dtype) or (dtype is not None and dtype != _FLOAT and dtype.newbyteorder() == _FLOAT)


def shape_of(image: Any) -> tuple[int, ...]:
    """The shape of an array, an array-like, or a Picture of one."""
    if isinstance(image, Picture):
        image = image.path
    return tuple(getattr(image, "shape", None) or np.shape(image))


def samples_of(image: Any, channels: int, layout: str) -> Any:
    """An array-like of the converted values; other objects unchanged."""
    return _Samples(image, channels, layout) if is_samples(image) else image


class _Samples:
    """Computes (sample * scale - mean) / std in float32, in the order of the library."""

    dtype = _FLOAT

    def __init__(self, image: Any, channels: int, layout: str) -> None:
        picture = image if isinstance(image, Picture) else Picture(image)
        self.source = unmasked(picture.path, "the image")
        self.shape = shape_of(self.source)
        self.kind = _type_of(self.source)
        self.chunks = getattr(self.source, "chunks", None)
        self.channel = len(self.shape) - (3 if layout == "NCHW" else 1)
        self.plain = not _is_integer(self.kind)
        if self.plain and isinstance(image, Picture):
            raise UsageError(
                f"a Picture of an array of {self.kind}: scale, mean and std are for uint8 and uint16"
            )
        raw = picture.raw
        usual_scale = np.float32(1) if raw else np.float32(1) / np.float32(255)
        self.scale = usual_scale if picture.scale is None else np.float32(picture.scale)
        self.divided = self.kind is not None and self.kind.itemsize == 2 and not raw
        usual = channels in (1, 3) and not raw
        self.mean = self._per_channel("mean", picture.mean, _MEAN if usual else (0.0,), channels)
        self.std = self._per_channel("std", picture.std, _STD if usual else (1.0,), channels)
        self.bgr = picture.bgr and channels == 3

    def _per_channel(self, name: str, given: Any, usual: tuple[Any, ...], channels: int) -> np.ndarray:
        numbers = list(usual) if given is None else _numbers(name, given)
        if given is None:
            numbers = numbers[:channels] if len(numbers) > 1 else numbers
        if len(numbers) not in (1, channels):
            raise UsageError(
                f"{name} has {len(numbers)} numbers, the network takes {channels} channels: one "
                "number for each, or one for all"
            )
        values = np.asarray(numbers, np.float32)
        if not np.isfinite(values).all() or (name == "std" and not values.all()):
            raise UsageError(f"{name} is {numbers}: must be finite, and std not 0")
        return values.reshape((-1,) + (1,) * (2 if self.channel == len(self.shape) - 3 else 0))

    def __getitem__(self, index: tuple[Any, ...]) -> np.ndarray:
        block = unmasked(self.source[index], "what the source gave")
        values = np.asarray(block).astype(np.float32)
        if self.plain:
            return values
        if self.bgr:
            values = np.flip(values, -3 if self.channel == len(self.shape) - 3 else -1)
        if self.divided:
            values = values / np.float32(257)
        made: np.ndarray = (values * self.scale - self.mean) / self.std
        return made
