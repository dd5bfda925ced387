"""Models for images of any size, their plans, and runs in several threads."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from collections import OrderedDict
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

import numpy as np

from . import _c
from ._batch import run_images
from ._call import Call
from ._errors import UsageError
from ._files import Target, returned, set_files
from ._forecast import Forecast, forecast_of
from ._held import Held
from ._inputs import Input, size_of
from ._models import Model as ModelFile
from ._models import Origin
from ._network import Memory, Network, Observer, TensorInfo, inputs_of, open_options, outputs_of
from ._outputs import Outputs
from ._pictures import Picture, is_picture, picture_size, take_picture
from ._reports import Stages, read_stages
from ._sizes import c_name, parse_size
from ._steps import observe

PathLike = Union[str, "os.PathLike[str]"]
_MOST_PLANS = 4  # that a model keeps for its run()


class Model(Held):
    """A model that is opened once, for images of any size, in any number of threads.

        model = rfexec.Model("net.onnx")
        maps = model.run(image, memory="64MiB")          # plans, packs the weights and runs
        plan = model.plan((1024, 1024), memory="64MiB")  # plans and packs once,
        maps = plan.run(image)                           # for many runs, also in several threads

    A model is a context manager. close() frees its memory when no plan in use needs it any more. It
    cannot be copied or pickled.

    Args:
        model, conv, seed, pad_to, padding, int8, dequantize: as in rfexec.open().
        size: (rows, columns) of plans that are made without a size.
    """

    def __init__(
        self,
        model: ModelFile,
        conv: str = "direct",
        seed: int = 0,
        pad_to: int = 0,
        padding: str = "reflect",
        size: Optional[tuple[int, int]] = None,
        int8: str = "ort",
        dequantize: bool = False,
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._plans: OrderedDict[tuple[Any, ...], Plan] = OrderedDict()
        self._channels: Optional[int] = None
        options_given = (conv, seed, pad_to, padding, None, int8, dequantize)
        self._given: tuple[Any, ...] = (model, size, *options_given)
        options = open_options(conv, seed, pad_to, padding, int8, dequantize)
        options.rows, options.columns = parse_size(size)
        self._origin = Origin(model)  # C reads its bytes as long as the handle exists
        self.model = self._origin.shown
        self._handle = self._origin.open(
            _c.library.rfx_model_open, _c.library.rfx_model_open_memory, options
        )
        _locked.add(self)

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

        Args:
            size: (rows, columns) of images; None: the picture's size, or the model's own.
            memory: the budget, as in Network.plan(), of a process with one run at a time. Every further
                run at the same time takes its feature maps once more.
            threads, spill: as in Network.plan().
            picture: a picture whose decoder counts in the budget; None: runs are on arrays.
            output: files that runs may write; their names may differ from run to run.
            plan_file: a file that Plan.save() or `rfexec plan -o` wrote; the plan follows it.

        Raises:
            BudgetError: no plan fits the budget.
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
        mask: Optional[PathLike] = None,
    ) -> dict[str, np.ndarray]:
        """Runs one image of any size that the model takes; arguments and result as in Network.run().

        The plans of the last sizes are kept, so the next image of such a size is neither planned nor
        packed again. Under a budget only the plan in use is kept. Runs in several threads run in
        parallel; one thread at a time makes a plan. With a `mask` no plan is kept, because every
        rectangle of the mask has a plan of its own.
        """
        picture = is_picture(image)
        size = None if picture else size_of(image, layout, self._count_channels)
        found = picture_size(image)[:2] if picture else size
        if mask is not None:
            with self._open(found) as network:
                return network.run(
                    image, memory, threads, out, progress, outputs, layout, spill, observer, output, mask
                )
        # The decoder of a picture and the files of outputs count in the budget of a plan.
        key = (found, memory, threads, spill, repr(image) if picture else None, repr(output))
        with self._lock:
            plan = self._plans.pop(key, None)
            if plan is None:
                self._drop(0 if memory is not None else _MOST_PLANS - 1)
                plan = self.plan(size, memory, threads, image if picture else None, spill, output)
            self._plans[key] = plan
        return plan.run(image, out, progress, outputs, layout, observer, output)

    def _count_channels(self) -> int:
        """Channels of the image, which do not depend on its size."""
        if self._channels is None:
            with self._open(self._given[1]) as network:
                self._channels = network._channels()
        return self._channels

    def _open(self, size: Optional[tuple[int, int]]) -> Network:
        """The model as a network of one size."""
        if not self._handle:
            raise UsageError("the model is closed")
        model, _, *options = self._given
        return Network(model, size, *options)

    def _drop(self, most: int) -> None:
        while len(self._plans) > most:
            self._plans.popitem(last=False)  # a run that uses the plan keeps it alive

    def close(self) -> None:
        """Frees the memory that no plan in use needs."""
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

    def __repr__(self) -> str:
        return f"<rfexec.Model {self.model}{'' if self._handle else ': closed'}>"


class Plan(Held):
    """A model at one size under one budget, with its packed weights; Model.plan() makes it.

    Several threads may call run() at once. A plan is a context manager. close() frees its memory when no
    run uses it any more. It cannot be copied or pickled.

    Attributes:
        forecast: a Forecast of the process with one run at a time.
        inputs, outputs: a TensorInfo of each, as of a Network.
    """

    _instead = "save() writes it as a file"

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
        self._idle: list[ctypes.c_void_p] = []  # runners that no thread uses
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
            set_files(call, output, self._find_outputs(rows, columns, picture))
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
        _locked.add(self)

    def _find_outputs(self, rows: int, columns: int, picture: Any) -> tuple[TensorInfo, ...]:
        """The outputs, from a plan without a budget: files need their names before the plan is made."""
        size = (rows, columns) if rows else None
        if size is None and picture is not None:
            size = picture_size(picture)[:2]
        with self._model.plan(size) as plan:
            outputs: tuple[TensorInfo, ...] = plan.outputs
        return outputs

    def stages(self) -> Stages:
        """Returns the stages of the plan: a list of Stage that prints as a table."""
        return read_stages(Call(), _c.library.rfx_model_plan_stages, self._need())

    def save(self, path: PathLike) -> None:
        """Writes the plan as a file for Model.plan(plan_file=...) and `rfexec run --plan`."""
        Call().make(_c.library.rfx_model_plan_save, self._need(), c_name(path, "path"))

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
        """Runs one image of the plan's size, or a batch; arguments and result as in Network.run()."""
        with self._runner() as runner:
            if is_picture(image):
                return self._run_picture(runner, image, out, progress, outputs, observer, output)

            def run_one(call: Call, source: Input, results: Outputs, n: int) -> None:
                call.make(
                    _c.library.rfx_runner_run,
                    runner,
                    source.raw,
                    results.addresses_of(n),
                    results.count,
                    call.options,
                )

            wanted = self.inputs[0].shape
            return run_images(
                image, wanted, self.outputs, layout, progress, observer, outputs, out, run_one, output
            )

    def _run_picture(
        self, runner: Any, image: Any, out: Any, progress: Any, names: Any, observer: Any, output: Any
    ) -> dict[str, np.ndarray]:
        call = Call(progress=progress)
        observe(call, observer, self.outputs)
        name = take_picture(image, call)
        with returned(call, output, self.outputs, names, out) as (kept, files):
            results = Outputs(self.outputs, kept, out, None)
            call.make(
                _c.library.rfx_runner_run_file,
                runner,
                name,
                results.addresses,
                results.count,
                call.options,
            )
            return results.typed(files)

    def _need(self) -> ctypes.c_void_p:
        if not self._handle:
            raise UsageError("the plan is closed")
        return self._handle

    @contextlib.contextmanager
    def _runner(self) -> Iterator[ctypes.c_void_p]:
        """A runner that no other thread uses. Under a budget one idle runner is kept, else all."""
        with self._lock:
            self._need()
            if self._idle:
                runner = self._idle.pop()
            else:
                runner = ctypes.c_void_p()
                Call().make(_c.library.rfx_model_plan_runner, self._handle, ctypes.byref(runner))
        try:
            yield runner
        finally:
            with self._lock:
                keep = bool(self._handle) and not (self._budget and self._idle)
                if keep:
                    self._idle.append(runner)
            if not keep:
                _c.library.rfx_runner_free(runner)

    def close(self) -> None:
        """Frees the memory that no run in another thread uses."""
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

    def __repr__(self) -> str:
        if not self._handle:
            return f"<rfexec.Plan of {self._model.model}: closed>"
        return f"<rfexec.Plan of {self._model.model}: {list(self.inputs[0].shape)}, {self.forecast.words}>"


_locked: weakref.WeakSet[Any] = weakref.WeakSet()  # models and plans


def _after_fork() -> None:
    """In a child process: a lock that another thread held would stay held."""
    for held in list(_locked):
        held._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
