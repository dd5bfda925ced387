"""Arrays for outputs: those of the caller, or new ones."""

from __future__ import annotations

import ctypes
from typing import Any, Iterable, Mapping, Optional, Sequence

import numpy as np

from ._errors import UsageError


def _check(name: str, array: Any, shape: tuple[Any, ...], image: Optional[np.ndarray]) -> np.ndarray:
    if not isinstance(array, np.ndarray):
        raise UsageError(f"out for '{name}' is a {type(array).__name__}: wanted a numpy array")
    if array.shape != shape or array.dtype != np.float32:
        raise UsageError(
            f"out for '{name}' is {array.dtype} of shape {array.shape}: wanted float32 of {shape}"
        )
    if not (array.flags.c_contiguous and array.flags.writeable and array.flags.aligned):
        raise UsageError(f"out for '{name}' must be C-contiguous and writable")
    if image is not None and np.may_share_memory(array, image):
        raise UsageError(f"out for '{name}' overlaps the image")
    return array


def _of_batch(shape: tuple[Any, ...], images: int) -> tuple[Any, ...]:
    """The shape for a batch: a leading 1 becomes the number of images, else that number is put in front."""
    if images == 1:
        return shape
    return (images, *(shape[1:] if shape[:1] == (1,) else shape))


class Outputs:
    """The arrays of a run: for all outputs or the named ones, of one image or a batch."""

    def __init__(
        self,
        known: Sequence[Any],
        names: Optional[Iterable[str]],
        out: Any,
        image: Optional[np.ndarray],
        images: int = 1,
    ) -> None:
        shapes = {info.name: _of_batch(info.shape, images) for info in known}
        wanted = list(shapes) if names is None else [names] if isinstance(names, str) else list(names)
        given = self._given(out, wanted)
        for name in (*wanted, *given):
            if name not in shapes:
                raise UsageError(f"no output '{name}'; there are {', '.join(map(repr, shapes))}")
        self.arrays: dict[str, np.ndarray] = {}
        self._wanted = wanted
        late = {info.name for info in known if info.late}  # they have no arrays
        for name in sorted(late.intersection(given)):
            raise UsageError(f"out for '{name}': its size depends on data, so it takes no array")
        if late and images > 1:
            raise UsageError("sizes of the outputs depend on data: run the images of a batch one by one")
        for name in wanted:
            if name in late:
                continue
            if given.get(name) is None:
                self.arrays[name] = np.empty(shapes[name], np.float32)
            else:
                self.arrays[name] = _check(name, given[name], shapes[name], image)
        self._types = {info.name: np.dtype(info.dtype) for info in known}
        self._given_names = {name for name, array in given.items() if array is not None}
        self._refuse_overlaps()
        self.count = len(known)
        self._names = [info.name for info in known]
        self._images = images
        self.addresses = self.addresses_of(0)

    def typed(self, files: Mapping[str, str]) -> dict[str, np.ndarray]:
        """After the run: the caller's arrays, and new arrays in the outputs' types, some of them from files."""
        return {name: np.load(files[name]) if name in files else self._typed(name) for name in self._wanted}

    def _typed(self, name: str) -> np.ndarray:
        array = self.arrays[name]
        return array if name in self._given_names else array.astype(self._types[name], copy=False)

    def addresses_of(self, image: int) -> Any:
        """Addresses of the outputs of one image of a batch, by output number."""
        addresses = (ctypes.c_void_p * self.count)()
        for k, name in enumerate(self._names):
            if name in self.arrays:
                array = self.arrays[name]
                addresses[k] = array.ctypes.data + image * (array.nbytes // self._images)
        return addresses

    @staticmethod
    def _given(out: Any, wanted: Sequence[str]) -> Mapping[str, Any]:
        if out is None:
            return {}
        if isinstance(out, Mapping):
            return out
        arrays = [out] if isinstance(out, np.ndarray) else list(out)
        if len(arrays) != len(wanted):
            raise UsageError(f"out has {len(arrays)} arrays for {len(wanted)} outputs")
        return dict(zip(wanted, arrays))

    def _refuse_overlaps(self) -> None:
        arrays = list(self.arrays.items())
        for i, (name, array) in enumerate(arrays):
            for other, later in arrays[i + 1 :]:
                if np.may_share_memory(array, later):
                    raise UsageError(f"out for '{name}' overlaps that for '{other}'")
