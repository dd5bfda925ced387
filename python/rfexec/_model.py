"""Models for images of any size, their plans, and runs in several threads."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import OrderedDict
from typing import Any, Iterable, Mapping, Optional, Union

import numpy as np

from . import _c
from ._call import Call, progress_of_image
from ._errors import UsageError
from ._files import Target, set_files
from ._forecast import Forecast, forecast_of
from ._inputs import Input, as_array, images_in, layout_of
from ._models import Model as ModelFile
from ._models import model_bytes
from ._network import Memory, Observer, TensorInfo, inputs_of, open_options, outputs_of
from ._outputs import Outputs
from ._pictures import Picture, is_picture, picture_size, take_picture
from ._reports import Stages, stages_of
from ._samples import is_samples, shape_of
from ._sizes import c_name, parse_size
from ._steps import observe

PathLike = Union[str, "os.PathLike[str]"]
_MOST_STAGES = 1000
_MOST_PLANS = 4  # that a model keeps for its run()


class Model:
    """A model, opened once, for images of any size, in any number of threads.

        model = rfexec.Model("net.onnx")
        maps = model.run(image, memory="64MiB")          # plans, packs the weights, runs
        plan = model.plan((1024, 1024), memory="64MiB")  # once,
        maps = plan.run(image)                           # for many runs, also in several threads

    model, conv, seed, pad_to, padding: as in rfexec.open(). size: (rows, columns) of plans that name
    none. A context manager; close() gives the memory back when no plan needs it any more.
    """

    def __init__(
        self,
        model: ModelFile,
        conv: str = "direct",
        seed: int = 0,
        pad_to: int = 0,
        padding: str = "reflect",
        size: Optional[tuple[int, int]] = None,
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._plans: OrderedDict[tuple[Any, ...], Plan] = OrderedDict()
        self._size = parse_size(size)
        options = open_options(conv, seed, pad_to, padding)
        options.rows, options.columns = self._size
        call = Call()
        out = ctypes.byref(self._handle)
        if isinstance(model, (str, os.PathLike)):
            self.model = os.fspath(model)
            name = c_name(model, "model")
            if isinstance(model, os.PathLike) and b"/" not in name:
                name = b"./" + name  # a file, also where a built-in has its name
            call.path = name
            call.make(_c.library.rfx_model_open, name, options, out)
        else:
            self._bytes = model_bytes(model)  # C reads them as long as there is a handle
            self.model = f"<{self._bytes.size:,} bytes>"
            call.make(
                _c.library.rfx_model_open_memory,
                self._bytes.ctypes.data,
                self._bytes.size,
                options,
                out,
            )

    def plan(
        self,
        size: Optional[tuple[int, int]] = None,
        memory: Memory = None,
        threads: int = 0,
        picture: Union[None, PathLike, Picture] = None,
        spill: Optional[PathLike] = None,
        output: Union[None, Target, Mapping[str, Target]] = None,
        plan_file: Optional[PathLike] = None,
    ) -> "Plan":
        """Plans for one size and packs the weights, for any number of runs.

        size: (rows, columns) of images; None: that of `picture`, or else the model's own. picture: a
        picture whose decoder the plan has room for; None: runs are on arrays. memory, threads,
        spill: as in Network.plan(); memory holds for one run at a time, every further one at the
        same time takes its feature maps once more. output: files that runs may write (their names
        may differ). plan_file: a file that Plan.save() or `rfexec plan -o` wrote, which is followed.
        """
        return Plan(self, size, memory, threads, picture, spill, output, plan_file)

    def run(
        self,
        image: Any,
        memory: Memory = None,
        threads: int = 0,
        out: Any = None,
        progress: Any = None,
        outputs: Optional[Iterable[str]] = None,
        layout: Optional[str] = None,
        spill: Optional[PathLike] = None,
        observer: Observer = None,
        output: Union[None, Target, Mapping[str, Target]] = None,
    ) -> dict[str, np.ndarray]:
        """Runs one image of any size that the model takes; arguments and result as of Network.run().

        Plans of the last sizes are kept, so that the next image of a size is neither planned nor
        packed again. Under a budget only the plan in use is kept. Calls of several threads run side
        by side.
        """
        picture = is_picture(image)
        size = None if picture else _size_of(image, layout, self._channels)
        found = picture_size(image)[:2] if picture else size
        # A picture's decoder and files have their place in a budget, so they are part of the plan.
        key = (found, memory, threads, spill, repr(image) if picture else None, repr(output))
        with self._lock:
            plan = self._plans.pop(key, None)
            if plan is None:
                self._drop(0 if memory is not None else _MOST_PLANS - 1)
                plan = self.plan(
                    size, memory, threads, image if picture else None, spill, output
                )
            self._plans[key] = plan
        return plan.run(image, out, progress, outputs, layout, observer, output)

    @property
    def _channels(self) -> Optional[int]:
        """Channels of the image, where a plan has told them."""
        plan = next(iter(self._plans.values()), None)
        return None if plan is None else int(plan.inputs[0].shape[1])

    def _drop(self, most: int) -> None:
        while len(self._plans) > most:
            self._plans.popitem(last=False)  # runs that use it keep it

    def close(self) -> None:
        """Gives back what no plan in use needs."""
        with self._lock:
            self._drop(0)
            self._free()

    def _free(self, _free: Any = _c.library.rfx_model_free) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            _free(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._free()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<rfexec.Model {self.model}{'' if self._handle else ': closed'}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a rfexec.Model cannot be copied or pickled: it holds memory of the C library; open it "
            "again where it is needed"
        )


def _size_of(image: Any, layout: Optional[str], channels: Optional[int]) -> tuple[int, int]:
    """Rows and columns of an array; without a layout, channels last where that alone fits."""
    shape = shape_of(image)
    if len(shape) not in (3, 4):
        raise UsageError(f"the image has shape {shape}: three axes, or four")
    if layout is None:
        few = 4 if channels is None else channels
        last = shape[-1] <= few < shape[-3] if channels is None else shape[-1] == few != shape[-3]
        layout = "NHWC" if last else "NCHW"
    rows, columns = shape[-2:] if layout == "NCHW" else shape[-3:-1]
    return int(rows), int(columns)


class Plan:
    """A model at one size under one budget, with its packed weights; made by Model.plan().

    run() may be called from several threads at once. `forecast` says what the process takes with one
    run at a time. A context manager; close() gives the memory back when no run uses it any more.
    """

    def __init__(
        self,
        model: Model,
        size: Optional[tuple[int, int]],
        memory: Memory,
        threads: int,
        picture: Union[None, PathLike, Picture],
        spill: Optional[PathLike],
        output: Union[None, Target, Mapping[str, Target]],
        plan_file: Optional[PathLike],
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._idle: list[ctypes.c_void_p] = []
        self._model = model
        self._budget = memory is not None
        if not model._handle:
            raise UsageError("the model is closed")
        rows, columns = parse_size(size)
        call = Call(memory, threads, spill=spill)
        if plan_file is not None:
            call.options.plan_file = c_name(plan_file, "plan_file")
        name = take_picture(picture, call)
        if output is not None:
            set_files(call, output, self._known_outputs(rows, columns, picture))
        raw = _c.Forecast(size=ctypes.sizeof(_c.Forecast))
        call.make(
            _c.library.rfx_model_plan_create,
            model._handle,
            rows,
            columns,
            name,
            call.options,
            ctypes.byref(self._handle),
        )
        call.make(_c.library.rfx_model_plan_forecast, self._handle, raw)
        self.forecast: Forecast = forecast_of(raw)
        network = _c.library.rfx_model_plan_network(self._handle)
        self.inputs: tuple[TensorInfo, ...] = inputs_of(network)
        self.outputs: tuple[TensorInfo, ...] = outputs_of(network)

    def _known_outputs(self, rows: int, columns: int, picture: Any) -> tuple[TensorInfo, ...]:
        """Names of outputs, by a plan without a budget: files are named before a plan is made."""
        size = (rows, columns) if rows else None
        if size is None and picture is not None:
            size = picture_size(picture)[:2]
        with self._model.plan(size) as plan:
            return plan.outputs

    def stages(self) -> Stages:
        """The stages of the plan; a list that prints as a table."""
        raw = (_c.StageReport * _MOST_STAGES)()
        count = ctypes.c_int()
        Call().make(
            _c.library.rfx_model_plan_stages,
            self._open(),
            raw,
            ctypes.sizeof(_c.StageReport),
            _MOST_STAGES,
            ctypes.byref(count),
        )
        return stages_of(raw[: count.value])

    def save(self, path: PathLike) -> None:
        """Writes the plan as a file for Model.plan(plan_file=...) and `rfexec run --plan`."""
        Call().make(_c.library.rfx_model_plan_save, self._open(), c_name(path, "path"))

    def run(
        self,
        image: Any,
        out: Any = None,
        progress: Any = None,
        outputs: Optional[Iterable[str]] = None,
        layout: Optional[str] = None,
        observer: Observer = None,
        output: Union[None, Target, Mapping[str, Target]] = None,
    ) -> dict[str, np.ndarray]:
        """Runs one image of the plan's size, or a batch of them; as Network.run()."""
        runner = self._take()
        try:
            if is_picture(image):
                return self._run_picture(runner, image, out, progress, outputs, observer, output)
            wanted = self.inputs[0].shape
            layout = layout_of(image, wanted, layout)
            images = images_in(image, wanted, layout)
            if images > 1 and output is not None:
                raise UsageError("a batch is returned: a file takes the output of one image")
            results: Optional[Outputs] = None
            for n in range(images):
                call = Call(progress=progress_of_image(progress, n, images))
                observe(call, observer, self.outputs)
                names = self._not_written(call, output, outputs, out)
                source = Input(image, wanted, layout, call.set_read, n if images > 1 else None)
                if results is None:
                    given = None if is_samples(image) else as_array(image)
                    results = Outputs(self.outputs, names, out, given, images)
                call.make(
                    _c.library.rfx_runner_run,
                    runner,
                    source.raw,
                    results.addresses_of(n),
                    results.count,
                    call.options,
                )
            assert results is not None
            return results.typed()
        finally:
            self._give_back(runner)

    def _run_picture(
        self, runner: Any, image: Any, out: Any, progress: Any, names: Any, observer: Any, output: Any
    ) -> dict[str, np.ndarray]:
        call = Call(progress=progress)
        observe(call, observer, self.outputs)
        name = take_picture(image, call)
        results = Outputs(self.outputs, self._not_written(call, output, names, out), out, None)
        call.make(
            _c.library.rfx_runner_run_file,
            runner,
            name,
            results.addresses,
            results.count,
            call.options,
        )
        return results.typed()

    def _not_written(self, call: Call, output: Any, names: Any, out: Any) -> Any:
        """The outputs that are returned: those that are named, or that no file gets."""
        if output is None:
            return names
        written = set_files(call, output, self.outputs)
        if names is None and out is None:
            return [info.name for info in self.outputs if info.name not in written]
        return names

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise UsageError("the plan is closed")
        return self._handle

    def _take(self) -> ctypes.c_void_p:
        """A runner that no other thread uses."""
        with self._lock:
            self._open()
            if self._idle:
                return self._idle.pop()
            runner = ctypes.c_void_p()
            Call().make(_c.library.rfx_model_plan_runner, self._handle, ctypes.byref(runner))
            return runner

    def _give_back(self, runner: ctypes.c_void_p) -> None:
        with self._lock:
            if self._handle and not (self._budget and self._idle):
                self._idle.append(runner)
                return
        _c.library.rfx_runner_free(runner)

    def close(self) -> None:
        """Gives back what no run in another thread uses."""
        with self._lock:
            self._free()

    def _free(
        self,
        _free: Any = _c.library.rfx_model_plan_free,
        _free_runner: Any = _c.library.rfx_runner_free,
    ) -> None:
        while self._idle:
            _free_runner(self._idle.pop())
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            _free(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._free()

    def __enter__(self) -> "Plan":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._handle:
            return f"<rfexec.Plan of {self._model.model}: closed>"
        return f"<rfexec.Plan of {self._model.model}: {list(self.inputs[0].shape)}, {self.forecast.words}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a rfexec.Plan cannot be copied or pickled: it holds memory of the C library; save() "
            "writes it as a file"
        )
