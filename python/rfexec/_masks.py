"""Masks of boxes, as run lengths."""

from __future__ import annotations

from typing import Any

import numpy as np


class Mask:
    """Which pixels of an image belong to the object of a box; Network.boxes makes it.

    It is stored as COCO's run lengths, which take no more memory for a large image. crop() has the pixels
    of the object alone.

    Attributes:
        size: (rows, columns) of the image.
        counts: int64 (n,), read-only: lengths of runs of pixels outside and inside in turn, from the upper left
            corner down each column; the first is outside and may be 0.
    """

    __slots__ = ("size", "counts")

    def __init__(self, size: Any, counts: Any) -> None:
        self.size: tuple[int, int] = (int(size[0]), int(size[1]))
        self.counts = np.array(counts, np.int64)
        self.counts.flags.writeable = False

    @property
    def area(self) -> int:
        """The number of pixels inside."""
        return int(self.counts[1::2].sum())

    def crop(self) -> tuple[np.ndarray, tuple[int, int]]:
        """Returns the smallest rectangle that contains the mask.

        Returns:
            (inside, (row, column)): a bool array of the rectangle, and the pixel of the image at its upper
            left corner. Without pixels inside, an array of shape (0, 0), and (0, 0).
        """
        ends = self.counts.cumsum()
        first, last = ends[0:-1:2], ends[1::2] - 1  # pixels of each run inside
        if len(first) == 0:
            return np.zeros((0, 0), bool), (0, 0)
        height = self.size[0]
        left, right = int(first[0]) // height, int(last[-1]) // height + 1
        top, bottom = int((first % height).min()), int((last % height).max()) + 1
        if (first // height != last // height).any():  # a run goes on in the next column
            top, bottom = 0, height
        rows = bottom - top
        changes = np.zeros((right - left) * rows + 1, np.int8)
        changes[(first // height - left) * rows + first % height - top] += 1
        changes[(last // height - left) * rows + last % height - top + 1] -= 1
        inside = changes[:-1].cumsum(dtype=np.int8).astype(bool)
        return inside.reshape(right - left, rows).T, (top, left)

    def to_array(self) -> np.ndarray:
        """Returns a bool array of the whole image, (rows, columns)."""
        whole = np.zeros(self.size, bool)
        inside, (row, column) = self.crop()
        whole[row : row + inside.shape[0], column : column + inside.shape[1]] = inside
        return whole

    def to_rle(self) -> dict[str, Any]:
        """Returns COCO's compressed run lengths, {"size": [rows, columns], "counts": text}.

        json.dump writes them. pycocotools.mask takes them with counts.encode().
        """
        return {"size": list(self.size), "counts": _compress(self.counts)}

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Mask):
            return NotImplemented
        return self.size == other.size and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<rfexec.Mask of {self.area} pixels of {self.size[0]}x{self.size[1]}>"


def _compress(counts: np.ndarray) -> str:
    """rleToString of cocoapi's maskApi.c: each difference to the run before the last one, but of the first
    three runs the run itself, in groups of 5 bits, the lowest first; the sixth bit says that more follow."""
    numbers = counts.copy()
    numbers[3:] -= counts[1:-2]
    shifts = np.arange(0, 65, 5)[:13]
    groups = (numbers[:, None] >> shifts) & 31
    rest = numbers[:, None] >> np.minimum(shifts + 5, 63)
    more = rest != np.where(groups & 16, -1, 0)
    more[:, -1] = False
    used = np.cumprod(np.concatenate([np.ones((len(more), 1), bool), more[:, :-1]], 1), 1).astype(bool)
    text: bytes = (groups + np.where(more, 32, 0) + 48).astype(np.uint8)[used].tobytes()
    return text.decode("ascii")
