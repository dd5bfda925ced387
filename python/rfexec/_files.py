"""Output files that are written during a run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
from dataclasses import dataclass, replace
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from . import _c
from ._call import Call
from ._errors import UsageError
from ._sizes import c_name, c_number

_DOUBLE_ENDS = (
    *(".ome.tif", ".ome.tiff", ".ome.zarr", ".coco.json"),
    *(".boxes.geojson", ".boxes.csv", ".points.geojson", ".points.csv", ".summary.json", ".summary.csv"),
    *(".text.json", ".text.csv", ".text.geojson"),
)


@dataclass(frozen=True)
class File:
    """A file, or folder, for an output. Its bytes equal those of the program's `-o`.

    Attributes:
        path: its end chooses the format: .npy, .tif, .ome.tif, .png, .pfm, .zarr or .ome.zarr.
            Files of .geojson and .csv have what is found in the output, not the output: the connected
            regions of a map, or the boxes of a detector. .json, .coco.json,
            .boxes.geojson and .boxes.csv have boxes,
            .points.geojson and .points.csv the peaks of a map, .summary.json and .summary.csv the
            pixels, areas and values of its classes, .text.json, .text.csv and .text.geojson the boxes of
            text in the map of a DB network.
        bits: bits of a sample, 8, 16 or 32 (float); None: the default of the format.
        range: (lowest, highest): the values that become the smallest and largest sample of 8 or 16
            bits; None: the smallest and largest value of the output.
        compression: "deflate" or "zstd" for TIFF, "zstd" for Zarr; None: uncompressed.
        overviews: smaller copies for viewers: "mean", or "nearest" for labels; None: no copies.
        channel_names: a text file with one channel name a line, for .ome.tif.
        tile: rows and columns of a TIFF's tiles; 0: the default.
        cog: True for a cloud optimized GeoTIFF.
        zarr_format: 2 or 3; 0: 3.
        chunk: rows and columns of a Zarr chunk; 0: the default.
        threshold: of regions and summaries: one number, or one for each channel, which is then the class of
            the pixels above it; None: the class of a pixel is its largest channel, or its integer. Points
            need it, and are above it; for text None is 0.3.
        corners: True: pixels that touch at corners belong to one region.
        all_labels: True: label 0, or the first of several channels, is no background.
        min_area: regions of fewer pixels of the map are left out.
        classes: a text file with one name of a class a line, label 0 first.
        coordinates: "pixels" of the picture, "auto": its coordinate system where it has one.
        answer_memory: bytes for regions that are not complete, or for the nodes that suppress boxes; 0: no
            limit, or 8 MiB of a budget, for these nodes more.
        score: of boxes: those with scores up to it are left out; of text: those with scores below it, where 0.25
            stands for 0.6.
        iou: of two boxes whose intersection is a larger share of their union, the one of the lower score
            is dropped.
        agnostic: True: boxes of different classes suppress each other too.
        head: the form of the detector's output, such as "yolov8"; None: the one that its shape fits. Only
            Network.boxes takes a head file.
        max_boxes: candidates that are held at most; 0: 100,000.
        distance: of points: each is the largest value of 2 distance + 1 rows and columns of the map around
            it, and the first of equal ones; 0: 1.
        within: of summaries: a GeoJSON file of polygons in which pixels are counted once more.
        bins: of summaries: (n, lowest, highest): a histogram of the values with n bins.
        simplify: of regions in .geojson: polygons have fewer points, at most so many pixels of the map from
            the exact ones, up to 0.7; neighbours keep their common edges. 0: they are exact.
        soft_nms: of boxes, True: overlaps lower scores by a Gaussian of sigma 0.5, in place of dropping
            boxes; iou is not used.
        class_count: of boxes: the classes of the head, if further channels are behind them; 0: all channels
            are classes, but 1 with "yolov8-pose", and with "yolov8-seg" all but 32.
        quantiles: of summaries: exact quantiles of each channel, and with within of each polygon too: rising
            numbers from 0 to 1, at most 16. The values wait in a file without a name beside path, 4 bytes for
            each.
    """

    path: Union[str, os.PathLike[str]]
    bits: Optional[int] = None
    range: Optional[tuple[float, float]] = None
    compression: Optional[str] = None
    overviews: Optional[str] = None
    channel_names: Union[None, str, os.PathLike[str]] = None
    tile: int = 0
    cog: bool = False
    zarr_format: int = 0
    chunk: int = 0
    threshold: Union[None, float, Sequence[float]] = None
    corners: bool = False
    all_labels: bool = False
    min_area: int = 0
    classes: Union[None, str, os.PathLike[str]] = None
    coordinates: str = "auto"
    answer_memory: int = 0
    score: float = 0.25
    iou: float = 0.45
    agnostic: bool = False
    head: Optional[str] = None
    max_boxes: int = 0
    distance: int = 0
    within: Union[None, str, os.PathLike[str]] = None
    bins: Optional[tuple[int, float, float]] = None
    simplify: float = 0.0
    soft_nms: bool = False
    class_count: int = 0
    quantiles: Sequence[float] = ()


Target = Union[str, "os.PathLike[str]", File]


def _named(path: str, output: str) -> str:
    """The program's name for one of several outputs: NAME.<output>.EXT."""
    folder, slash, base = path.rpartition("/")
    doubles = [end for end in _DOUBLE_ENDS if base.lower().endswith(end) and len(base) > len(end)]
    dot = len(base) - len(doubles[0]) if doubles else base.rfind(".")
    if dot < 0:
        return path
    return f"{folder}{slash}{base[:dot]}.{output.replace('/', '_')}{base[dot:]}"


def _file(target: Any) -> File:
    return target if isinstance(target, File) else File(target)


def _each(target: Any, names: Sequence[str]) -> dict[str, File]:
    """The file of each output: from a mapping, or from one path for all outputs."""
    if isinstance(target, Mapping):
        unknown = [name for name in target if name not in names]
        if unknown:
            raise UsageError(f"no output {unknown[0]!r}; there are {', '.join(map(repr, names))}")
        return {name: _file(file) for name, file in target.items()}
    file = _file(target)
    if len(names) == 1:
        return {names[0]: file}
    return {n: replace(file, path=_named(os.fspath(file.path), n)) for n in names}


def _word(text: Any, what: str) -> Optional[bytes]:
    if text is None or isinstance(text, str):
        return None if text is None else text.encode()
    raise UsageError(f"{what} is {text!r}: a word, or None")


def _fill(at: Any, k: int, file: File) -> None:
    _c.library.rfx_result_file_init(at, ctypes.sizeof(at))
    at.output, at.path = k, c_name(file.path, "output")
    at.bits = 0 if file.bits is None else c_number(file.bits, "bits", 32)
    if file.range is not None:
        at.low, at.high = map(float, file.range)
        if not at.low < at.high:
            raise UsageError(f"range is {file.range}: (lowest, highest)")
    at.compression = _word(file.compression, "compression")
    at.overviews = _word(file.overviews, "overviews")
    if file.channel_names is not None:
        at.channel_names = c_name(file.channel_names, "channel_names")
    at.tile, at.cog = c_number(file.tile, "tile", 32), int(file.cog)
    at.zarr_format = c_number(file.zarr_format, "zarr_format", 32)
    at.chunk = c_number(file.chunk, "chunk")


def _fill_answers(at: Any, file: File) -> Any:
    """Sets the members about answers. Returns what must live as long as the call."""
    numbers: Any = [] if file.threshold is None else np.atleast_1d(np.asarray(file.threshold, np.float32))
    kept = (ctypes.c_float * max(1, len(numbers)))(*numbers)
    if len(numbers) > 0:
        at.thresholds, at.n_thresholds = kept, len(numbers)
    if file.coordinates not in ("auto", "pixels"):
        raise UsageError(f"coordinates is {file.coordinates!r}: auto or pixels")
    at.corners, at.all_labels = int(file.corners), int(file.all_labels)
    at.pixels = int(file.coordinates == "pixels")
    at.least_area = c_number(file.min_area, "min_area")
    at.answer_bytes = c_number(file.answer_memory, "answer_memory")
    if file.classes is not None:
        at.classes = c_name(file.classes, "classes")
    at.score, at.overlap, at.agnostic = float(file.score), float(file.iou), int(file.agnostic)
    at.head, at.most_boxes = _word(file.head, "head"), c_number(file.max_boxes, "max_boxes")
    at.distance = c_number(file.distance, "distance")
    if file.within is not None:
        at.within = c_name(file.within, "within")
    if file.bins is not None:
        if len(file.bins) != 3 or file.bins[0] < 1:
            raise UsageError(f"bins is {file.bins}: (number, lowest, highest)")
        at.bins = c_number(file.bins[0], "bins")
        at.bins_low, at.bins_high = map(float, file.bins[1:])
    at.simplify, at.soft_nms = float(file.simplify), int(file.soft_nms)
    at.class_count = c_number(file.class_count, "class_count")
    quantiles = (ctypes.c_double * len(file.quantiles))(*map(float, file.quantiles))
    if len(quantiles) > 0:
        at.quantiles, at.n_quantiles = quantiles, len(quantiles)
    return kept, quantiles


def set_files(call: Call, target: Any, infos: Sequence[Any]) -> None:
    """Makes the call write files."""
    names = [info.name for info in infos]
    files = _each(target, names)
    raw = (_c.ResultFile * max(1, len(files)))()
    for at, (name, file) in zip(raw, files.items()):
        _fill(at, names.index(name), file)
        call.keep(_fill_answers(at, file))
    if files:
        call.options.files, call.options.n_files = raw, len(files)
    call.keep(raw)


@contextlib.contextmanager
def returned(
    call: Call, target: Any, infos: Sequence[Any], names: Any, out: Any
) -> Iterator[tuple[Any, dict[str, str]]]:
    """Makes the call write files of `target` (None: no files).

    Yields the names of the outputs that the run returns, which are `names`, or if neither names nor out
    are given, the outputs without a file; and the files from which it reads those whose size is not known.
    """
    written = {} if target is None else _each(target, [info.name for info in infos])
    if names is None and out is None and written:
        names = [info.name for info in infos if info.name not in written]
    wanted = [names] if isinstance(names, str) else names
    late = [info.name for info in infos if info.late and (wanted is None or info.name in wanted)]
    for name in late:
        if name in written:
            raise UsageError(f"output '{name}' goes to a file: its size depends on data, so it is not returned too")
    with contextlib.ExitStack() as stack:
        paths: dict[str, str] = {}
        if late:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rfexec-"))
            paths = {name: os.path.join(folder, f"{k}.npy") for k, name in enumerate(late)}
        set_files(call, {**written, **{name: File(path) for name, path in paths.items()}}, infos)
        yield names, paths
