"""Networks: opening, planning, running."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from . import _answers as answers
from . import _bands, _c, _call
from ._batch import run_images
from ._call import Call
from ._errors import BudgetError, RefusedError, UsageError
from ._files import Target, returned, set_files
from ._forecast import Forecast, forecast_of
from ._held import Held
from ._inputs import Input, images_in, layout_of, size_of
from ._models import Model, Origin
from ._outputs import Outputs
from ._pictures import Picture, is_picture, picture_size, take_picture
from ._reports import Layers, Stages, layers_of, read_stages
from ._sizes import c_name, c_number, parse_size
from ._steps import Step, observe

if TYPE_CHECKING:
    from ._parts import Part, Round

CONVOLUTIONS = {"direct": 0, "openblas": 1, "winograd": 2}
INT8 = {"ort": 0, "spec": 1}
PADDINGS = {"reflect": 0, "edge": 1, "zero": 2}
Memory = Union[None, int, str]
Observer = Optional[Callable[[Step], Any]]


@dataclass(frozen=True)
class TensorInfo:
    """Name, shape and type of an input or output, as the model declares them.

    Attributes:
        name: the tensor's name in the model.
        shape: its dimensions; None for a dimension that depends on the image's size while the network
            has no size yet, or on the data of a run (of detectors that suppress by themselves).
        dtype: the numpy name of its type, such as "float32" or "int64".
        map: (channels, rows, columns) of an output that is a feature map, whatever its shape; else None.
        late: whether it is an output of nodes whose sizes depend on data, even if its shape is declared.
    """

    name: str
    shape: tuple[Any, ...]
    dtype: str = "float32"
    map: Optional[tuple[int, int, int]] = field(default=None, repr=False)
    late: bool = field(default=False, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor. Raises UsageError if a dimension is not known."""
        if None in self.shape:
            raise UsageError(
                f"'{self.name}' has the shape {self.shape}: the network has no size yet, or the size depends on data"
            )
        n = int(np.dtype(self.dtype).itemsize)
        for size in self.shape:
            n *= size
        return n


def inputs_of(network: Any) -> tuple[TensorInfo, ...]:
    """The one input of a C network."""
    dims = (ctypes.c_int64 * _c.MAX_DIMS)()
    _c.library.rfx_network_input_shape(network, dims)
    name = _c.text(_c.library.rfx_network_input_name(network))
    return (TensorInfo(name, tuple(dims[:4])),)


def outputs_of(network: Any) -> tuple[TensorInfo, ...]:
    """All outputs of a C network."""
    dims = (ctypes.c_int64 * _c.MAX_DIMS)()
    infos = []
    for k in range(_c.library.rfx_network_output_count(network)):
        rank = _c.library.rfx_network_output_shape(network, k, dims)
        name = _c.text(_c.library.rfx_network_output_name(network, k))
        kind = _c.text(_c.library.rfx_network_output_type(network, k))
        area = _c.Area()
        found = _c.library.rfx_network_output_map(network, k, ctypes.byref(area))
        planes = (area.channels, area.rows, area.columns) if found else None
        shape = tuple(None if size < 0 else size for size in dims[:rank])
        late = _c.library.rfx_network_output_elements(network, k) < 0
        infos.append(TensorInfo(name, shape, kind, planes, late))
    return tuple(infos)


def open_options(
    conv: str, seed: int, pad_to: int, padding: str, int8: str, dequantize: bool
) -> _c.OpenOptions:
    """The C options of a model or network, without a size."""
    options = _c.OpenOptions()
    _c.library.rfx_open_options_init(options, ctypes.sizeof(options))
    if conv not in CONVOLUTIONS:
        raise UsageError(f"conv is {conv!r}: {', '.join(map(repr, CONVOLUTIONS))}")
    options.convolution = CONVOLUTIONS[conv]
    if int8 not in INT8:
        raise UsageError(f"int8 is {int8!r}: {', '.join(map(repr, INT8))}")
    options.int8, options.dequantize = INT8[int8], bool(dequantize)
    if padding not in PADDINGS:
        raise UsageError(f"padding is {padding!r}: {', '.join(map(repr, PADDINGS))}")
    options.pad_to, options.padding = c_number(pad_to, "pad_to"), PADDINGS[padding]
    if not 0 <= seed < 2**64:
        raise UsageError(f"seed is {seed}: 0 to 2^64 - 1")
    options.seed = seed
    options.late_nodes = True
    return options


_networks: weakref.WeakSet[Network]


class Network(Held):
    """A network for images of one size; rfexec.open() makes it.

    One thread at a time uses a network; calls from other threads wait. Different networks run in
    parallel. A network is a context manager, and close() frees its memory. It cannot be copied or
    pickled: open it again where it is needed.
    """

    _bound = True  # whether it has a size; a model with an open size gets one from its first image
    _closed = False
    model: Any

    def __init__(
        self,
        model: Model,
        size: Optional[tuple[int, int]] = None,
        conv: str = "direct",
        seed: int = 0,
        pad_to: int = 0,
        padding: str = "reflect",
        image: Union[None, str, os.PathLike[str], Picture] = None,
        int8: str = "ort",
        dequantize: bool = False,
        join_heads: bool = False,
        head_file: Optional[str] = None,
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._runners: set[int] = set()  # handles that must be freed before the network's
        self._parts: dict[int, set[int]] = {}  # likewise, each with the handles of its runners
        self._lock = threading.Lock()
        self._owner: Optional[int] = None  # the thread whose call holds the lock
        self._current: Optional[Call] = None
        self._lost = False  # another thread was running it when this process was forked
        self._binding = threading.Lock()
        rows, columns = parse_size(size)
        if image is not None and size is None:
            rows, columns = picture_size(image)[:2]
        self._options = open_options(conv, seed, pad_to, padding, int8, dequantize)
        self._options.join_heads = join_heads
        if head_file is not None:
            self._options.head_file = c_name(head_file, "head")
        self._joined: Optional[tuple[Optional[str], Network]] = None  # see _with_joined_heads
        self._given = (conv, seed, pad_to, padding, None, int8, dequantize)
        self._origin = model if isinstance(model, Origin) else Origin(model)
        self.model = self._origin.shown
        self._inputs: tuple[TensorInfo, ...] = ()
        self._outputs: tuple[TensorInfo, ...] = ()
        open_size = None
        try:
            self._open(rows, columns)
        except RefusedError as failure:
            if rows or _OPEN_SIZE not in str(failure):
                raise
            open_size = failure
        self._bound = open_size is None
        _networks.add(self)

    def _open(self, rows: int, columns: int) -> None:
        """Opens the model at a size; 0, 0: the model's own size."""
        self._options.rows, self._options.columns = rows, columns
        self._handle = self._origin.open(
            _c.library.rfx_network_open, _c.library.rfx_network_open_memory, self._options
        )
        self._inputs = inputs_of(self._handle)
        self._outputs = outputs_of(self._handle)

    def _probe(self) -> None:
        """Reads names and shapes of a network without a size: opens it at two sizes and compares."""
        if self._bound or self._inputs:
            return
        infos: list[list[TensorInfo]] = []
        for size in ((256, 256), (384, 512)):
            try:
                self._open(*size)
            except RefusedError:
                continue
            infos.append([*self._inputs, *self._outputs])
            handle, self._handle = self._handle, ctypes.c_void_p()
            _c.library.rfx_network_free(handle)
        self._inputs = self._outputs = ()
        if not infos:
            raise UsageError(
                f"{self.model} leaves its size open and takes neither 256x256 nor 384x512: "
                "pass size=(rows, columns) to open(), or run an image first"
            )
        known = [
            TensorInfo(
                a.name,
                tuple(m if m == n else None for m, n in zip(a.shape, b.shape))
                if len(infos) > 1
                else (*a.shape[:2], None, None) if len(a.shape) == 4 else a.shape,
                a.dtype,
                late=a.late,
            )
            for a, b in zip(infos[0], infos[-1])
        ]
        self._inputs, self._outputs = tuple(known[:1]), tuple(known[1:])

    def _bind(self, image: Any, layout: Optional[str]) -> None:
        """Gives a network without a size the size of an image."""
        with self._binding:
            if self._bound or self._closed:
                return
            if is_picture(image):
                size = picture_size(image)[:2]
            else:
                size = size_of(image, layout, self._channels)
            self._open(*size)
            self._bound = True

    def _channels(self) -> int:
        """Channels of the image, also of a network without a size."""
        self._probe()
        return int(self._inputs[0].shape[1])

    def _need(self) -> None:
        """Raises UsageError if the network is closed or has no size."""
        if self._closed:
            raise UsageError("the network is closed")
        if not self._bound:
            raise UsageError(
                "the network has no size yet, because its model leaves the size open: pass "
                "size=(rows, columns) or image=path to open(), or run an image first"
            )

    def close(self) -> None:
        """Frees the network's memory. Its runners and shards are closed too."""
        if self._closed:
            return
        if self._joined is not None:
            self._joined[1].close()
        if not self._bound:
            self._closed = True
            return
        with self._busy(Call()):
            self._closed = True
            handle, self._handle = self._handle, ctypes.c_void_p()
            self._free(handle)

    def __repr__(self) -> str:
        if self._closed or not self._bound:
            return f"<rfexec.Network {self.model}: {'closed' if self._closed else 'no size yet'}>"
        shapes = ", ".join(f"{o.name} {list(o.shape)}" for o in self._outputs)
        return f"<rfexec.Network {self.model}: {list(self._inputs[0].shape)} to {shapes}>"

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            self._free(handle)

    def _free(
        self,
        handle: Any,
        _free: Any = _c.library.rfx_network_free,
        _free_runner: Any = _c.library.rfx_runner_free,
    ) -> None:
        while self._runners:  # the collector may free them later in a reference cycle
            _free_runner(self._runners.pop())
        for part in list(getattr(self, "_parts", ())):
            self._free_part(part)
        _free(handle)

    def _free_part(
        self,
        part: int,
        _free: Any = _c.library.rfx_network_free,
        _free_runner: Any = _c.library.rfx_runner_free,
    ) -> None:
        runners = self._parts.pop(part, None)
        while runners:
            _free_runner(runners.pop())
        if runners is not None:
            _free(part)

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The one input, of shape (1, channels, rows, columns), in a tuple."""
        self._probe()
        return self._inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """All outputs, in the model's order."""
        self._probe()
        return self._outputs

    def _with_joined_heads(self, head_file: Optional[str] = None) -> Network:
        """The same network with one more output, if its outputs are those of a detector's head. With a head
        file, the new output replaces those that the file names. The network of the last head is kept."""
        with self._binding:
            if self._closed:
                raise UsageError("the network is closed")
            if self._joined is None or self._joined[0] != head_file:
                rows = self._options.rows if self._bound else 0  # 0: the size is the model's own
                size = (rows, self._options.columns) if rows else None
                joined = Network(self._origin, size, *self._given, join_heads=True, head_file=head_file)
                self._joined = (head_file, joined)
            return self._joined[1]

    @contextlib.contextmanager
    def _busy(self, call: Call, owner: Optional[int] = None) -> Iterator[None]:
        """Holds the network for one call. Waits for other threads; raises UsageError in the same thread."""
        if self._lost:
            raise UsageError("this network was running in another thread when the process forked")
        self._need()
        owner = threading.get_ident() if owner is None else owner
        if self._owner == owner:
            raise UsageError(
                "the network is running: a progress function, a source or a loop over bands() may "
                "not use it"
            )
        with self._lock:
            self._need()
            self._owner, self._current = owner, call
            try:
                yield
            finally:
                self._owner, self._current = None, None

    def cancel(self) -> None:
        """Stops the call that runs now, in whichever thread. That call raises Cancelled."""
        call = self._current
        if call is not None:
            call.stop()
        if self._joined is not None:
            self._joined[1].cancel()

    def plan(
        self,
        memory: Memory = None,
        threads: int = 0,
        picture: Union[None, str, os.PathLike[str], Picture] = None,
        spill: Union[None, str, os.PathLike[str]] = None,
        output: Union[None, Target, Mapping[str, Target]] = None,
    ) -> Forecast:
        """Plans a run without running it.

        Args:
            memory: the budget of the run: "64MiB", "1.5GiB", a number of bytes, or None for no limit.
                Your own arrays come on top.
            threads: number of threads; 0: the processors that the process may use.
            picture: the image file that would be run; None: an array.
            spill: a folder in which large feature maps may wait in nameless files; None: no files.
            output: the files that run() would write, as in run().

        Returns:
            A Forecast with the peak memory, the MACs and a description of the plan.

        Raises:
            BudgetError: no plan fits `memory`. Its `forecast` is the run with the smallest peak, its
                `needed_bytes` that peak.
            RefusedError: the image cannot be read.
            UsageError: an argument is wrong.
        """
        call = Call(memory, threads, spill=spill)
        raw = _c.Forecast(size=ctypes.sizeof(_c.Forecast))
        if picture is not None:
            self._bind(picture, None)
        name = take_picture(picture, call)
        if output is not None:
            self._need()
            set_files(call, output, self._outputs)
        with self._busy(call):
            try:
                call.make(_c.library.rfx_network_predict, self._handle, name, call.options, raw)
            except BudgetError as failure:
                failure.forecast = forecast_of(raw)
                failure.needed_bytes = failure.forecast.peak_bytes
                raise
        return forecast_of(raw)

    def analyze(self) -> Layers:
        """Returns the layers of the network: a list of Layer that prints as a table."""
        self._need()
        raw = (_c.LayerReport * _c.library.rfx_network_layer_count(self._handle))()
        call = Call()
        with self._busy(call):
            call.make(
                _c.library.rfx_network_layers, self._handle, raw, ctypes.sizeof(_c.LayerReport)
            )
        return layers_of(raw)

    def stages(
        self,
        memory: Memory = None,
        threads: int = 0,
        picture: Union[None, str, os.PathLike[str], Picture] = None,
        spill: Union[None, str, os.PathLike[str]] = None,
    ) -> Stages:
        """Returns the stages of the plan that plan() describes: a list of Stage that prints as a table.

        The arguments and exceptions are those of plan(). The plan is made again.
        """
        call = Call(memory, threads, spill=spill)
        if picture is not None:
            self._bind(picture, None)
        name = take_picture(picture, call)
        with self._busy(call):
            return read_stages(call, _c.library.rfx_network_stages, self._handle, name, call.options)

    def _start(
        self, image: Any, layout: Optional[str], call: Call
    ) -> tuple[Any, tuple[Any, ...], Optional[Input]]:
        """The C function that runs an image, its arguments, and the object that must live until it ends."""
        self._need()
        if is_picture(image):
            name = take_picture(image, call)
            return _c.library.rfx_network_run_file, (self._handle, name), None
        wanted = self._inputs[0].shape
        source = Input(image, wanted, layout_of(image, wanted, layout), call.set_read)
        return _c.library.rfx_network_run_source, (self._handle, source.raw), source

    def run(
        self,
        image: Any,
        memory: Memory = None,
        threads: int = 0,
        out: Any = None,
        progress: Any = None,
        outputs: Optional[Iterable[str]] = None,
        layout: Optional[str] = None,
        spill: Union[None, str, os.PathLike[str]] = None,
        observer: Observer = None,
        output: Union[None, Target, Mapping[str, Target]] = None,
        mask: Union[None, str, os.PathLike[str]] = None,
    ) -> dict[str, np.ndarray]:
        """Runs the network on one image or a batch.

        The bits of the outputs depend on the network, its `conv` and the image. They do not depend on
        `memory` or `threads`.

        Args:
            image: one of
                - the path of an image file, or a Picture, which adds page, bands and scaling;
                - "synthetic:ROWSxCOLUMNS[:SEED]", a generated image;
                - a float32 array (1, channels, rows, columns) or (channels, rows, columns). It is not
                  copied, whatever its strides;
                - a uint8 or uint16 array. Its samples become values with ImageNet's scale, mean and std;
                  Picture(array, scale=..., mean=..., std=...) chooses others;
                - an array-like with `shape` and `[...]` (zarr, h5py, dask), which is read in bands of rows;
                - a batch (images, channels, rows, columns). It runs image by image, with one plan and the
                  memory of one image.
            memory, threads, spill: as in plan().
            out: a float32 array for the output, or a list or dict of arrays. None: new arrays.
            progress: a function of (done, total), or a tqdm bar; called every 50 ms. An exception in it
                ends the run.
            outputs: the names of the outputs to return; None: all.
            layout: "NCHW", or "NHWC" for channels last. None: the one that fits the shape, NCHW if both do.
            observer: a function of a Step, called after each step in this thread. A run has some thousands
                of steps, and each call takes some microseconds. An exception in it ends the run.
            output: files that outputs are written to during the run, as by the program's -o: a path, a
                File, or a dict of them by output name. A path for several outputs, "map.tif", becomes
                "map.<output>.tif". Outputs in files are not returned, unless `outputs` or `out` names them.
            mask: an image file of any size that is laid over the output, as the program's --mask. Where
                it is 0 nothing is computed, and 0 (or the no-data value of a GeoTIFF) is written; other
                pixels have the bits of the whole run. It is for one output, which must be a feature map
                (`output` or `outputs` names one of several), of one image; not with an observer. Files of
                8 and 16 bits need a range. Behind layers that see a whole feature map everything is
                computed.

        Returns:
            A dict of the outputs by name, in the shape and type that the model declares. Outputs of a batch
            are (images, ...). Arrays given as `out` stay float32. Outputs whose size depends on data, such as
            the boxes of detectors that suppress by themselves, have the size found; they take no `out` and
            no batch, and are read from files in the module tempfile's folder.

        Raises:
            BudgetError: no plan fits `memory`.
            RefusedError: the image cannot be read or does not fit the network.
            UsageError: an argument is wrong, such as an array of another shape.
            SystemFailure: no memory or threads, or reading or writing failed.
            Cancelled: cancel() was called. Ctrl-C raises KeyboardInterrupt.
        """
        self._bind(image, layout)
        self._need()
        if not is_picture(image):
            wanted = self._inputs[0].shape
            layout = layout_of(image, wanted, layout)
            if images_in(image, wanted, layout) > 1:
                if output is not None:
                    raise UsageError("output= writes the output of one image: the outputs of a batch are returned")
                if mask is not None:
                    raise UsageError("mask= is for one image, not for a batch")
                with self.prepare(memory, threads, spill) as runner:
                    return runner.run(image, out, progress, outputs, layout, observer=observer)
        call = Call(memory, threads, progress, spill)
        if mask is not None:
            call.options.mask = c_name(mask, "mask")
            if output is not None and outputs is None and out is None:
                outputs = []  # one output only
        observe(call, observer, self._outputs)
        with returned(call, output, self._outputs, outputs, out) as (names, files):
            function, arguments, source = self._start(image, layout, call)
            results = Outputs(self._outputs, names, out, None if source is None else source.array)
            with self._busy(call):
                call.make(function, *arguments, results.addresses, results.count, call.options)
            return results.typed(files)

    def boxes(
        self,
        image: Any,
        output: Optional[str] = None,
        *,
        score: float = 0.25,
        iou: float = 0.45,
        agnostic: bool = False,
        head: Union[None, str, os.PathLike[str]] = None,
        max_boxes: int = 0,
        soft_nms: bool = False,
        class_count: int = 0,
        **run: Any,
    ) -> np.ndarray:
        """Runs a detector on one image and returns its boxes, suppressed over the whole image.

        Args:
            image: as in run().
            output: the output that has the boxes; None: the only one that is no feature map, or all those of
                a head that has several (YuNet, the RFB face detector) or of a detector that suppresses by itself.
            score, iou, agnostic, head, max_boxes, soft_nms, class_count: as in File; head may also be the
                path of a head file, such as "head.json", which describes any other head (docs/answers.md).
            run: memory, threads and other arguments of run(). With masks, spill is also the folder in which
                the prototypes wait, 8 bytes for each pixel of the image; None: that of the module tempfile.

        Returns:
            An array with the fields box (left, top, right, bottom in pixels), score, label and index (of
            the candidate in the output), by falling score; of a YuNet also points (5 of x, y), with
            head="yolov8-pose" those of the network (x, y and score); with head="yolov8-seg" also mask, a Mask.
            Of a head of boxes with an angle (yolov8-obb, yolo26-obb), corners (4 of x, y), centre, size
            (width, height) and angle (radians, clockwise) in place of box.

        Raises:
            As run(). RefusedError: the output is that of no known detector. BudgetError: there are more
            candidates than max_boxes.
        """
        self._bind(image, run.get("layout"))
        head = os.fspath(head) if head is not None else None
        file = {"score": score, "iou": iou, "agnostic": agnostic, "head": head, "max_boxes": max_boxes}
        file.update(soft_nms=soft_nms, class_count=class_count)
        network = self
        if head is not None and head.lower().endswith(".json"):
            if output is not None:
                raise UsageError("output and a head file: the file names the outputs")
            network = self._with_joined_heads(os.path.abspath(head))
            output = network.outputs[-1].name
        elif any(info.late for info in self.outputs):
            network = self._with_joined_heads()
            lists = [info.name for info in network.outputs if len(info.shape) == 3 and info.shape[2] == 6]
            if output is None and lists:
                output = lists[-1]
        elif output is None and len(self.outputs) > 1:
            joined = self._with_joined_heads()
            lists = [info.name for info in self.outputs if info.map is None]
            if len(joined.outputs) > len(self.outputs):
                network, output = joined, joined.outputs[-1].name
            elif len(lists) == 1:
                output = lists[0]
        return answers.boxes(network, image, output, {**file, "coordinates": "pixels"}, run)

    def regions(
        self,
        image: Any,
        output: Optional[str] = None,
        *,
        threshold: Union[None, float, Sequence[float]] = None,
        corners: bool = False,
        all_labels: bool = False,
        min_area: int = 0,
        classes: Union[None, str, os.PathLike[str]] = None,
        coordinates: str = "auto",
        answer_memory: int = 0,
        simplify: float = 0.0,
        **run: Any,
    ) -> dict[str, Any]:
        """Runs the network on one image and returns the connected regions of a map.

        Args:
            image: as in run().
            output: the map; None: the only output.
            threshold, corners, all_labels, min_area, classes, coordinates, answer_memory, simplify: as in
                File.
            run: memory, threads and other arguments of run().

        Returns:
            A FeatureCollection of GeoJSON: polygons with label, area, perimeter, centroid and scores.
            `shapely.geometry.shape` and `geopandas.GeoDataFrame.from_features` take it.

        Raises:
            As run(). BudgetError: regions that are not complete need more than answer_memory.
        """
        file: dict[str, Any] = {"threshold": threshold, "corners": corners, "all_labels": all_labels}
        file.update(min_area=min_area, classes=classes, coordinates=coordinates, answer_memory=answer_memory)
        file.update(simplify=simplify)
        return answers.regions(self, image, output, file, run)

    def points(
        self,
        image: Any,
        output: Optional[str] = None,
        *,
        threshold: Union[float, Sequence[float]],
        distance: int = 1,
        coordinates: str = "auto",
        **run: Any,
    ) -> np.ndarray:
        """Runs the network on one image and returns the peaks of a map, such as the middles of cells.

        Args:
            image: as in run().
            output: the map; None: the only output.
            threshold, distance, coordinates: as in File. Peaks are above the threshold.
            run: memory, threads and other arguments of run().

        Returns:
            An array with the fields x, y, score (the value) and label (the channel), sorted by rows of the
            map, then columns, then channels.

        Raises:
            As run().
        """
        file = {"threshold": threshold, "distance": distance, "coordinates": coordinates}
        return answers.points(self, image, output, file, run)

    def summary(
        self,
        image: Any,
        output: Optional[str] = None,
        *,
        threshold: Union[None, float, Sequence[float]] = None,
        classes: Union[None, str, os.PathLike[str]] = None,
        coordinates: str = "auto",
        within: Union[None, str, os.PathLike[str]] = None,
        bins: Optional[tuple[int, float, float]] = None,
        quantiles: Sequence[float] = (),
        **run: Any,
    ) -> dict[str, Any]:
        """Runs the network on one image and counts the pixels of each class of a map.

        Args:
            image: as in run().
            output: the map; None: the only output.
            threshold, classes, coordinates, within, bins, quantiles: as in File.
            run: memory, threads and other arguments of run().

        Returns:
            A dict with pixels and area of the map, and in classes a dict for each class with label, pixels,
            area, share, and smallest, largest and mean value (docs/points.md). With bins also a histogram,
            with quantiles these, and with within the same of each polygon, in within. Values that are not finite are None.

        Raises:
            As run(). RefusedError: a map of more than 65,536 different labels.
        """
        file: dict[str, Any] = {"threshold": threshold, "classes": classes, "coordinates": coordinates}
        file.update(within=within, bins=bins, quantiles=quantiles)
        return answers.summary(self, image, output, file, run)

    def bands(
        self,
        image: Any,
        memory: Memory = None,
        threads: int = 0,
        output: Optional[str] = None,
        progress: Any = None,
        layout: Optional[str] = None,
        spill: Union[None, str, os.PathLike[str]] = None,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Runs the network and yields the rows of one output as they are computed.

        For outputs larger than memory. The run starts with the first band, waits while the loop's body
        works, and ends when the loop is left. If the plan has column strips or tiles, the output waits in a
        temporary file until its rows are complete.

        Args:
            image, memory, threads, progress, layout, spill: as in run().
            output: the output's name; None: the first.

        Yields:
            (rows, band): a slice of the output's rows, from top to bottom, and a copy of these rows,
            (1, channels, rows, columns).

        Raises:
            UsageError: the output is no feature map; and the exceptions of run().
        """
        call = Call(memory, threads, progress, spill)
        self._bind(image, layout)
        k = self._number_of(output)
        info = self._outputs[k]
        if info.map is None:
            raise UsageError(f"output '{info.name}' is no map: {info.shape}; use run()")
        function, arguments, source = self._start(image, layout, call)
        call.keep(source)
        owner = threading.get_ident()

        def run() -> None:
            with self._busy(call, owner):
                call.make(function, *arguments, None, 0, call.options)

        bands = _bands.run_by_bands(call, run, k, (1, *info.map))
        if info.dtype == "float32":
            return bands
        return ((rows, band.astype(info.dtype)) for rows, band in bands)

    def prepare(
        self,
        memory: Memory = None,
        threads: int = 0,
        spill: Union[None, str, os.PathLike[str]] = None,
    ) -> "Runner":
        """Plans once and packs the weights once, for many images of this size.

        Args:
            memory, threads, spill: as in plan().

        Returns:
            A Runner.
        """
        return Runner(self, memory, threads, spill)

    def _number_of(self, output: Optional[str]) -> int:
        self._need()
        names = [info.name for info in self._outputs]
        if output is not None and output not in names:
            raise UsageError(f"no output '{output}'; there are {', '.join(map(repr, names))}")
        return 0 if output is None else names.index(output)

    def rounds(self, output: Optional[str] = None) -> int:
        """The number of rounds of states that shards of an output need before its parts.

        Each round lets the shards share the work before the next global operations (global pools, norms
        over a whole feature map). 0: there are none; part() shares all work.

            states = None
            for number in range(1, net.rounds() + 1):
                shards = [net.round(number, i, 3) for i in (1, 2, 3)]  # in any processes
                states = net.merge_states([shard.run(image, states=states) for shard in shards])
            parts = [net.part(i, 4, states=states).run(image) for i in (1, 2, 3, 4)]

        Args:
            output: the output's name; None: the first.

        Raises:
            RefusedError: a layer sees a whole feature map and has no states that could be merged
                (attention).
        """
        from ._parts import count_rounds

        return count_rounds(self, self._number_of(output))

    def round(self, number: int, index: int, count: int, output: Optional[str] = None) -> "Round":
        """Makes one shard's part in a round of states; see rounds().

        Args:
            number: the number of the round, from 1 to rounds().
            index, count: shard `index`, from 1, of `count`, which must be the same for all shards.
            output: the output's name; None: the first.

        Returns:
            A Round. Its run() returns states as bytes, which pickle, files or messages can carry.

        Raises:
            UsageError: there is no such round or shard. And the exceptions of rounds().
        """
        from ._parts import Round

        return Round(self, self._number_of(output), number, index, count)

    def merge_states(self, states: Iterable[Any]) -> bytes:
        """Adds up the states of shards of one round, or of groups that were merged before.

        The sum is exact: its bits do not depend on the order or the groups. When all shards are in, the
        next round, or part(), takes it.

        Args:
            states: bytes from Round.run() or merge_states().

        Raises:
            RefusedError: states of different networks, outputs, rounds or numbers of shards, a shard that
                is there twice, shards of different images, or changed bytes.
        """
        from ._parts import merge_states

        return merge_states(self, states)

    def part(
        self, index: int, count: int, output: Optional[str] = None, states: Any = None
    ) -> "Part":
        """Makes a shard: a network that computes some rows of one output.

        The shards 1 to `count` cover the output. They may run in other processes or on other machines.
        Concatenated (numpy.concatenate(..., axis=2)) they have the bits of one run, and they equal those of
        the program's `run --part index/count`. Behind layers that see a whole feature map (global pools,
        instance norms, attention) a shard computes all layers before them, unless `states` are given.

        Args:
            index: the number of the shard, from 1.
            count: the number of shards.
            output: the output's name; None: the first.
            states: the merged states of the last round (see rounds()). The shard then computes only what
                comes after it. An output that is no feature map has one shard, part(1, 1). The image must
                be that of the rounds, which is not checked.

        Returns:
            A Part.

        Raises:
            UsageError: the numbers are out of range, or the output is no feature map.
            RefusedError: `states` are of another network, output or round, not of all shards, or changed.
        """
        k = self._number_of(output)
        planes = self._outputs[k].map
        rows = planes[1] if planes is not None else 1
        if not 1 <= index <= count <= rows:
            raise UsageError(f"part {index} of {count}: 1 to {count}, of at most {rows} rows")
        each, longer = divmod(rows, count)  # the first `longer` shards have one row more
        first = each * (index - 1) + min(index - 1, longer)
        ends = slice(first, first + each + (index <= longer))
        return self.part_rect(ends, output=self._outputs[k].name, states=states)

    def part_rect(
        self,
        rows: slice,
        columns: slice = slice(None),
        output: Optional[str] = None,
        states: Any = None,
    ) -> "Part":
        """Makes a shard of some rows and columns of an output; see part().

        Args:
            rows, columns: slices of step 1, in pixels of the output.
            output: the output's name; None: the first.
            states: as in part().
        """
        from ._parts import Part

        return Part(self, self._number_of(output), rows, columns, states)


class Runner(Held):
    """A network with its plan, packed weights and memory ready for many images; Network.prepare() makes it.

    A runner is a context manager, and close() frees its memory. It cannot be copied or pickled.

    Attributes:
        network: the Network.
        forecast: a Forecast of its plan.
    """

    _closed = False
    _instead = "Network.prepare makes another"

    def __init__(
        self,
        network: Network,
        memory: Memory = None,
        threads: int = 0,
        spill: Union[None, str, os.PathLike[str]] = None,
    ) -> None:
        self.network = network
        self._handle = ctypes.c_void_p()
        self._memory, self._threads, self._spill = memory, threads, spill
        self._make()

    def _make(self) -> None:
        """Plans and packs the weights."""
        network = self.network
        call = Call(self._memory, self._threads, spill=self._spill)
        self._call = call  # keeps the folder's name alive
        raw = _c.Forecast(size=ctypes.sizeof(_c.Forecast))
        with network._busy(call):
            call.make(
                _c.library.rfx_runner_create,
                network._handle,
                call.options,
                ctypes.byref(self._handle),
            )
            network._runners.add(self._handle.value or 0)
            call.make(_c.library.rfx_runner_forecast, self._handle, raw)
        self.forecast = forecast_of(raw)

    def run(
        self,
        image: Any,
        out: Any = None,
        progress: Any = None,
        outputs: Optional[Iterable[str]] = None,
        layout: Optional[str] = None,
        spill: Union[None, str, os.PathLike[str]] = None,
        observer: Observer = None,
    ) -> dict[str, np.ndarray]:
        """Runs one image or a batch with the runner's plan; arguments and results as in Network.run().

        An image file needs a plan of its own. The runner frees its memory for that run and plans again for
        the next array. Another `spill` folder also makes it plan again.
        """
        if self._closed:
            raise UsageError("the runner is closed")
        again = spill is not None and spill != self._spill
        if again:
            self._spill = spill
        if again or is_picture(image):
            with self.network._busy(Call()):
                self._free()
        if is_picture(image):
            return self.network.run(
                image, self._memory, self._threads, out, progress, outputs, layout, self._spill, observer
            )
        if not self._handle:
            self._make()
        wanted, known = self.network.inputs[0].shape, self.network.outputs
        return run_images(
            image, wanted, known, layout, progress, observer, outputs, out, self._run_one
        )

    def _run_one(self, call: Call, source: Input, results: Outputs, n: int) -> None:
        with self.network._busy(call):
            self._need()
            call.make(
                _c.library.rfx_runner_run,
                self._handle,
                source.raw,
                results.addresses_of(n),
                results.count,
                call.options,
            )

    def stages(self) -> Stages:
        """Returns the stages of the runner's plan."""
        call = Call()
        if not self._handle and not self._closed:
            self._make()
        with self.network._busy(call):
            self._need()
            return read_stages(call, _c.library.rfx_runner_stages, self._handle)

    def close(self) -> None:
        """Frees the runner's memory. The network stays open."""
        if self._handle and not self.network._closed:
            with self.network._busy(Call()):
                self._free()
        self._closed = True

    def _need(self) -> None:
        if self._closed or self._handle.value not in self.network._runners:
            raise UsageError("the runner is closed")

    def _free(self, _free: Any = _c.library.rfx_runner_free) -> None:
        handle, self._handle.value = self._handle.value, None
        if handle in self.network._runners:
            self.network._runners.discard(handle)
            _free(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):  # no call can be using it
            self._free()


_OPEN_SIZE = "symbolic height or width"  # part of the C library's message
_networks = weakref.WeakSet()


def _after_fork() -> None:
    """In a child process: locks that other threads held would stay held, and their networks half run."""
    _call.forked_thread = threading.get_ident()
    for network in list(_networks):
        network._lost = network._lost or network._lock.locked()
        network._lock, network._binding = threading.Lock(), threading.Lock()
        network._owner = network._current = None


os.register_at_fork(after_in_child=_after_fork)


def open(
    model: Model,
    size: Optional[tuple[int, int]] = None,
    conv: str = "direct",
    seed: int = 0,
    pad_to: int = 0,
    padding: str = "reflect",
    image: Union[None, str, os.PathLike[str], Picture] = None,
    int8: str = "ort",
    dequantize: bool = False,
) -> Network:
    """Opens a network for images of one size.

    Args:
        model: one of
            - the path of an .onnx file (a pathlib.Path is always a file);
            - a built-in name such as "mobilenet_v2", with weights made from `seed`, not trained;
            - the bytes of an .onnx file, which are not copied and must not change;
            - an onnx.ModelProto.
            Bytes and ModelProtos count in the memory of plans and runs.
        size: (rows, columns). None: the size of `image`, else the model's own, else the size of the
            first image that runs.
        conv: what computes convolutions: "direct", "openblas" or "winograd". Each has its own rounding.
        seed: the seed of a built-in's weights, 0 to 2**64 - 1.
        pad_to: fills images up to multiples of this number at the right and bottom, and cuts outputs
            back. For networks that take no other sizes. 0: no padding.
        padding: how images are filled up: "reflect", "edge" or "zero" (zeros after mean and std).
        image: an image file that gives the size if `size` is None.
        int8: the arithmetic of 8-bit networks: "ort", the bytes of ONNX Runtime's integer kernels, or
            "spec", float32 between DequantizeLinear and QuantizeLinear as the file has them.
        dequantize: outputs of uint8 and int8 whose scale is known from the model become float32.

    Returns:
        A Network.

    Raises:
        RefusedError: the model cannot be read, is broken or is not supported. A missing file is also a
            FileNotFoundError.
        UsageError: an argument is wrong.
    """
    return Network(model, size, conv, seed, pad_to, padding, image, int8, dequantize)
