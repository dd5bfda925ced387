"""Networks: opening, asking, running."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Optional, Sequence, Union

import numpy as np

from . import _bands, _c, _call
from ._call import Call, progress_of_image
from ._errors import BudgetError, UsageError
from ._forecast import Forecast, forecast_of
from ._inputs import Input, as_array, images_in
from ._models import Model, model_bytes
from ._outputs import Outputs
from ._pictures import Picture, is_picture, take_picture
from ._reports import Layers, Stages, layers_of, stages_of
from ._sizes import c_name, c_number, parse_size
from ._steps import Step, observe

if TYPE_CHECKING:
    from ._parts import Part

CONVOLUTIONS = {"direct": 0, "openblas": 1, "winograd": 2}
PADDINGS = {"reflect": 0, "edge": 1, "zero": 2}
Memory = Union[None, int, str]
Observer = Optional[Callable[[Step], Any]]
_MOST_STAGES = 1000  # a plan has fewer than its network has cuts


@dataclass(frozen=True)
class TensorInfo:
    """Name and shape, in ONNX order, of an input or output; all are float32."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        n = 4
        for size in self.shape:
            n *= size
        return n


_networks: weakref.WeakSet[Network]


class Network:
    """A network for images of one size; made by rfexec.open().

    One thread at a time runs a network: calls from others wait. Different networks run side by side.
    """

    def __init__(
        self,
        model: Model,
        size: Optional[tuple[int, int]] = None,
        conv: str = "direct",
        seed: int = 0,
        pad_to: int = 0,
        padding: str = "reflect",
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._runners: set[int] = set()  # handles that are to be freed before the network's
        self._parts: dict[int, set[int]] = {}  # likewise, with those of their runners
        self._lock = threading.Lock()
        self._owner: Optional[int] = None  # the thread whose call holds the lock
        self._current: Optional[Call] = None
        self._lost = False  # another thread ran it when this process was forked
        options = _c.OpenOptions()
        _c.library.rfx_open_options_init(options, ctypes.sizeof(options))
        options.rows, options.columns = parse_size(size)
        if conv not in CONVOLUTIONS:
            raise UsageError(f"conv is {conv!r}: {', '.join(map(repr, CONVOLUTIONS))}")
        options.convolution = CONVOLUTIONS[conv]
        if padding not in PADDINGS:
            raise UsageError(f"padding is {padding!r}: {', '.join(map(repr, PADDINGS))}")
        options.pad_to, options.padding = c_number(pad_to, "pad_to"), PADDINGS[padding]
        if not 0 <= seed < 2**64:
            raise UsageError(f"seed is {seed}: 0 to 2^64 - 1")
        options.seed = seed
        out = ctypes.byref(self._handle)
        if isinstance(model, (str, os.PathLike)):
            self.model = os.fspath(model)
            Call().make(_c.library.rfx_network_open, c_name(model, "model"), options, out)
        else:
            self._bytes = model_bytes(model)  # read as long as there is a handle
            self.model = f"<{self._bytes.size:,} bytes>"
            address = self._bytes.ctypes.data
            Call().make(
                _c.library.rfx_network_open_memory, address, self._bytes.size, options, out
            )
        self._inputs = self._read_inputs()
        self._outputs = self._read_outputs()
        _networks.add(self)

    def _read_inputs(self) -> tuple[TensorInfo, ...]:
        dims = (ctypes.c_int64 * _c.MAX_DIMS)()
        _c.library.rfx_network_input_shape(self._handle, dims)
        name = _c.text(_c.library.rfx_network_input_name(self._handle))
        return (TensorInfo(name, tuple(dims[:4])),)

    def _read_outputs(self) -> tuple[TensorInfo, ...]:
        dims = (ctypes.c_int64 * _c.MAX_DIMS)()
        infos = []
        for k in range(_c.library.rfx_network_output_count(self._handle)):
            rank = _c.library.rfx_network_output_shape(self._handle, k, dims)
            name = _c.text(_c.library.rfx_network_output_name(self._handle, k))
            infos.append(TensorInfo(name, tuple(dims[:rank])))
        return tuple(infos)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{o.name} {list(o.shape)}" for o in self._outputs)
        return f"<rfexec.Network {self.model}: {list(self._inputs[0].shape)} to {shapes}>"

    def __del__(
        self,
        _free: Any = _c.library.rfx_network_free,
        _free_runner: Any = _c.library.rfx_runner_free,
    ) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            while self._runners:  # in a cycle of garbage they may come later
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
        """The one input: (1, channels, rows, columns)."""
        return self._inputs

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """All outputs, in the model's order."""
        return self._outputs

    @contextlib.contextmanager
    def _busy(self, call: Call, owner: Optional[int] = None) -> Iterator[None]:
        """Holds the network for one call; waits for other threads, but not for one's own."""
        if self._lost:
            raise UsageError("this network was running in another thread when the process forked")
        owner = threading.get_ident() if owner is None else owner
        if self._owner == owner:
            raise UsageError(
                "the network is running: a progress function, a source or a loop over bands() may "
                "not use it"
            )
        with self._lock:
            self._owner, self._current = owner, call
            try:
                yield
            finally:
                self._owner, self._current = None, None

    def cancel(self) -> None:
        """Ends the call that runs now, in whichever thread: that raises Cancelled."""
        call = self._current
        if call is not None:
            call.stop()

    def plan(
        self,
        memory: Memory = None,
        threads: int = 0,
        picture: Union[None, str, os.PathLike, Picture] = None,
        spill: Union[None, str, os.PathLike] = None,
    ) -> Forecast:
        """What run() would take, without running.

        memory: the most bytes that the run may take ("64MiB", "1.5GiB", a number; None: no limit).
        threads: 0 for as many as the process may use processors. picture: the file that would be
        run; None: an array. spill: a folder in which large maps that are needed again may wait in
        nameless files; None: no files. Raises BudgetError, with the smallest run as its `forecast`,
        where nothing fits.
        """
        call = Call(memory, threads, spill=spill)
        raw = _c.Forecast(size=ctypes.sizeof(_c.Forecast))
        name = take_picture(picture, call)
        with self._busy(call):
            try:
                call.make(_c.library.rfx_network_predict, self._handle, name, call.options, raw)
            except BudgetError as failure:
                failure.forecast = forecast_of(raw)
                raise
        return forecast_of(raw)

    def analyze(self) -> Layers:
        """What each layer is: shape, receptive field, MACs, bytes; a list that prints as a table."""
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
        picture: Union[None, str, os.PathLike, Picture] = None,
        spill: Union[None, str, os.PathLike] = None,
    ) -> Stages:
        """The stages of the plan that plan() with the same arguments describes, which is made once
        more; a list that prints as a table."""
        call = Call(memory, threads, spill=spill)
        name = take_picture(picture, call)
        raw = (_c.StageReport * _MOST_STAGES)()
        count = ctypes.c_int()
        with self._busy(call):
            call.make(
                _c.library.rfx_network_stages,
                self._handle,
                name,
                call.options,
                raw,
                ctypes.sizeof(_c.StageReport),
                _MOST_STAGES,
                ctypes.byref(count),
            )
        return stages_of(raw[: count.value])

    def _start(self, image: Any, layout: str, call: Call) -> tuple[Any, tuple, Optional[Input]]:
        """The C function for an image, its arguments, and what must live until it ends."""
        if is_picture(image):
            name = take_picture(image, call)
            return _c.library.rfx_network_run_file, (self._handle, name), None
        source = Input(image, self._inputs[0].shape, layout, call.set_read)
        return _c.library.rfx_network_run_source, (self._handle, source.raw), source

    def run(
        self,
        image: Any,
        memory: Memory = None,
        threads: int = 0,
        out: Any = None,
        progress: Any = None,
        outputs: Optional[Iterable[str]] = None,
        layout: str = "NCHW",
        spill: Union[None, str, os.PathLike] = None,
        observer: Observer = None,
    ) -> dict[str, np.ndarray]:
        """Runs the network on one image; returns its outputs by name, float32 in ONNX order.

        image: a picture's path, a Picture (which says page, bands and scaling) or
        "synthetic:ROWSxCOLUMNS[:SEED]" (values as the program's `run` makes them); or a float32 array
        (1, channels, rows, columns) or (channels, rows, columns), or with channels last for
        layout="NHWC", taken as it is, not copied, whatever its strides; or an array-like with shape
        and [...] (zarr, h5py, dask), which is read in bands.
        memory: as in plan(); arrays and array-likes come on top. out: an array (or a list, or a
        dict by name) that receives the outputs instead of new ones. outputs: names of those that
        are wanted; None: all. progress: a function of (done, total), or a tqdm bar; called every
        50 ms. Ctrl-C ends the run. spill: as in plan(). observer: a function of a Step, called after
        each of some thousands of steps, in this thread; what it returns does not matter, what it
        raises ends the run. It takes some microseconds a step.

        A batch, (images, channels, rows, columns), is run image by image in the memory of one, with
        one plan, and so are the outputs: each (images, ...), the bits of as many runs.

        The bits depend on the network, its `conv` and the image alone, not on memory or threads.
        """
        if not is_picture(image) and images_in(image, self._inputs[0].shape, layout) > 1:
            with self.prepare(memory, threads, spill) as runner:
                return runner.run(image, out, progress, outputs, layout, observer=observer)
        call = Call(memory, threads, progress, spill)
        observe(call, observer, self._outputs)
        function, arguments, source = self._start(image, layout, call)
        results = Outputs(self._outputs, outputs, out, None if source is None else source.array)
        with self._busy(call):
            call.make(function, *arguments, results.addresses, results.count, call.options)
        return results.arrays

    def bands(
        self,
        image: Any,
        memory: Memory = None,
        threads: int = 0,
        output: Optional[str] = None,
        progress: Any = None,
        layout: str = "NCHW",
        spill: Union[None, str, os.PathLike] = None,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Runs the network and yields one output while it is made, for maps larger than memory.

        Yields (rows, band): a slice of the output's rows, from top to bottom, and those rows,
        (1, channels, rows, columns), a copy. output: its name; None: the first. The run waits while
        the loop's body works, and ends when the loop is left. Where the plan makes column strips or
        tiles, the map is kept in a temporary file until rows are whole.
        """
        call = Call(memory, threads, progress, spill)
        k = self._number_of(output)
        info = self._outputs[k]
        if len(info.shape) != 4 or info.shape[0] != 1:
            raise UsageError(f"output '{info.name}' is no map: {info.shape}; use run()")
        function, arguments, source = self._start(image, layout, call)
        call.keep(source)
        owner = threading.get_ident()

        def run() -> None:
            with self._busy(call, owner):
                call.make(function, *arguments, None, 0, call.options)

        return _bands.run_by_bands(call, run, k, self._outputs[k].shape)

    def prepare(
        self,
        memory: Memory = None,
        threads: int = 0,
        spill: Union[None, str, os.PathLike] = None,
    ) -> "Runner":
        """Plans and packs the weights once, for many images of this size: see Runner."""
        return Runner(self, memory, threads, spill)

    def _number_of(self, output: Optional[str]) -> int:
        names = [info.name for info in self._outputs]
        if output is not None and output not in names:
            raise UsageError(f"no output '{output}'; there are {', '.join(map(repr, names))}")
        return 0 if output is None else names.index(output)

    def part(self, index: int, count: int, output: Optional[str] = None) -> "Part":
        """A network that makes part `index` of `count`, from 1 on, of an output's rows: those of the
        program's `run --part index/count`. Parts may run in other processes or on other machines;
        put side by side (numpy.concatenate(..., axis=2)) they have the bits of one run.

        output: its name; None: the first. Behind layers that see all of a map (global pools,
        instance norms, attention) a part computes all that comes before them.
        """
        k = self._number_of(output)
        shape = self._outputs[k].shape
        rows = shape[2] if len(shape) == 4 else 1
        if not 1 <= index <= count <= rows:
            raise UsageError(f"part {index} of {count}: 1 to {count}, of at most {rows} rows")
        each, longer = divmod(rows, count)  # the first `longer` have one row more
        first = each * (index - 1) + min(index - 1, longer)
        ends = slice(first, first + each + (index <= longer))
        return self.part_rect(ends, output=self._outputs[k].name)

    def part_rect(
        self, rows: slice, columns: slice = slice(None), output: Optional[str] = None
    ) -> "Part":
        """As part(), for some rows and columns of the output."""
        from ._parts import Part

        return Part(self, self._number_of(output), rows, columns)


class Runner:
    """A network made ready to run arrays: keeps its plan, its packed weights and its memory.

    `forecast` says what it takes. A context manager; close() gives the memory back.
    """

    def __init__(
        self,
        network: Network,
        memory: Memory = None,
        threads: int = 0,
        spill: Union[None, str, os.PathLike] = None,
    ) -> None:
        self.network = network
        self._handle = ctypes.c_void_p()
        self._call = call = Call(memory, threads, spill=spill)  # holds the folder's name
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
        outputs: Optional[Sequence[str]] = None,
        layout: str = "NCHW",
        spill: Union[None, str, os.PathLike] = None,
        observer: Observer = None,
    ) -> dict[str, np.ndarray]:
        """As Network.run on an array or array-like, without planning and packing again."""
        if is_picture(image):
            raise UsageError("a runner takes arrays and array-likes; pictures: Network.run")
        wanted, known = self.network.inputs[0].shape, self.network.outputs
        images = images_in(image, wanted, layout)
        results: Optional[Outputs] = None
        for n in range(images):
            call = Call(progress=progress_of_image(progress, n, images))
            observe(call, observer, known)
            source = Input(image, wanted, layout, call.set_read, n if images > 1 else None)
            if results is None:
                results = Outputs(known, outputs, out, as_array(image), images)
            self._run_one(call, source, results, n)
        assert results is not None
        return results.arrays

    def _run_one(self, call: Call, source: Input, results: Outputs, n: int) -> None:
        with self.network._busy(call):
            if not self._handle:
                raise UsageError("the runner is closed")
            call.make(
                _c.library.rfx_runner_run,
                self._handle,
                source.raw,
                results.addresses_of(n),
                results.count,
                call.options,
            )

    def stages(self) -> Stages:
        """The stages of the runner's plan."""
        raw = (_c.StageReport * _MOST_STAGES)()
        count = ctypes.c_int()
        call = Call()
        with self.network._busy(call):
            if not self._handle:
                raise UsageError("the runner is closed")
            call.make(
                _c.library.rfx_runner_stages,
                self._handle,
                raw,
                ctypes.sizeof(_c.StageReport),
                _MOST_STAGES,
                ctypes.byref(count),
            )
        return stages_of(raw[: count.value])

    def close(self) -> None:
        """Gives the memory back; the network stays."""
        if self._handle:
            with self.network._busy(Call()):
                self._free()

    def _free(self, _free: Any = _c.library.rfx_runner_free) -> None:
        handle, self._handle.value = self._handle.value, None
        if handle in self.network._runners:
            self.network._runners.discard(handle)
            _free(handle)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):  # nobody can be using it
            self._free()


_networks = weakref.WeakSet()


def _after_fork() -> None:
    """The child has this thread only: what others held stays held for ever, and half done."""
    _call.forked_thread = threading.get_ident()
    for network in list(_networks):
        network._lost = network._lost or network._lock.locked()
        network._lock = threading.Lock()
        network._owner = network._current = None


os.register_at_fork(after_in_child=_after_fork)


def open(
    model: Model,
    size: Optional[tuple[int, int]] = None,
    conv: str = "direct",
    seed: int = 0,
    pad_to: int = 0,
    padding: str = "reflect",
) -> Network:
    """Opens a network for images of one size.

    model: the path of an .onnx file, or a built-in name ("mobilenet_v2"; their weights are seeded,
    not trained); or the bytes of an .onnx file, or an onnx.ModelProto. Bytes are used where they lie
    (a bytearray must not change meanwhile), and count in the memory of plans and runs. size: (rows,
    columns); None: the model's own. conv: what computes convolutions: "direct", "openblas" or
    "winograd"; each gives bits of its own. seed: of a built-in's weights. pad_to: images are filled
    up to multiples of this number at their right and below, for networks that take no other sizes,
    and maps that come out are cut to the image's part of them; 0: not. padding: with what,
    "reflect", "edge" or "zero" (zeros as the network sees them, after mean and std).
    """
    return Network(model, size, conv, seed, pad_to, padding)
