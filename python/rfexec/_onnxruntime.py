"""The part of ONNX Runtime's InferenceSession that most programs use."""

from __future__ import annotations

import enum
import os
import threading
import warnings
import weakref
from typing import Any, Iterable, Mapping, Optional, Sequence

import numpy as np

from ._errors import UsageError
from ._modelmeta import ModelMetadata, model_metadata
from ._models import Model, model_bytes
from ._network import Memory, Network, Runner

_PROVIDER = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """The one that there is: the processor."""
    return [_PROVIDER]


def get_all_providers() -> list[str]:
    """As get_available_providers."""
    return [_PROVIDER]


def get_device() -> str:
    """ "CPU"."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Taken and not used: the library logs nothing."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Taken and not used: the library logs nothing."""


class GraphOptimizationLevel(enum.IntEnum):
    """Taken and not used: networks are always run in the same way."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Taken and not used."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """As onnxruntime.SessionOptions. intra_op_num_threads is a session's number of threads, where
    `threads` says none; all else is taken and not used."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self._entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept and not used."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """What was kept."""
        return self._entries[key]


class RunOptions:
    """As onnxruntime.RunOptions; taken and not used."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False


class NodeArg:
    """An input or output, as ONNX Runtime describes it."""

    def __init__(self, name: str, shape: list[Any], dtype: str = "float32") -> None:
        self.name = name
        self.shape = shape
        self.type = f"tensor({'float' if dtype == 'float32' else dtype})"

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


def _check_providers(providers: Optional[Sequence[Any]]) -> None:
    for provider in providers or ():
        name = provider[0] if isinstance(provider, tuple) else provider
        if name != _PROVIDER:
            warnings.warn(
                f"there is no provider {name!r}, only {_PROVIDER!r}: the session uses that",
                UserWarning,
                stacklevel=3,
            )


_sessions: weakref.WeakSet[InferenceSession]


class InferenceSession:
    """Runs an .onnx file, its bytes, or a built-in network as onnxruntime.InferenceSession does:

        session = rfexec.InferenceSession("net.onnx", memory="256MiB")
        result = session.run(None, {"image": array})

    memory and threads as in Network.plan. The network is planned, and its weights are packed, at
    the first image of a size, and kept until one of another size comes. Threads may share a session:
    their runs come one after the other, each with all of `threads`. Of sess_options the number of
    threads counts; a provider other than CPUExecutionProvider is warned of.
    """

    def __init__(
        self,
        path_or_bytes: Model,
        sess_options: Any = None,
        providers: Optional[Sequence[Any]] = None,
        provider_options: Any = None,
        *,
        memory: Memory = None,
        threads: int = 0,
        conv: str = "direct",
    ) -> None:
        _check_providers(providers)
        self._model = path_or_bytes
        if not isinstance(path_or_bytes, (str, os.PathLike)):
            self._model = model_bytes(path_or_bytes)
        self._options = sess_options
        self._memory, self._conv = memory, conv
        self._threads = threads or int(getattr(sess_options, "intra_op_num_threads", 0) or 0)
        self._runner: Optional[Runner] = None
        self._lock = threading.Lock()  # of the network and runner of the last size
        self._network = Network(self._model, None, conv)
        self._inputs = self._args(self._network.inputs)
        self._outputs = self._args(self._network.outputs)
        _sessions.add(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a rfexec.InferenceSession cannot be copied or pickled: it holds memory of the C library; "
            "make another where it is needed"
        )

    def _args(self, infos: Iterable[Any]) -> list[NodeArg]:
        """Dimensions that follow from the image's size are called so."""
        args = []
        for info in infos:
            shape = list(info.shape)
            if len(shape) == 4 and shape[2:] == [None, None]:
                shape[2:] = ["rows", "columns"]
            args.append(NodeArg(info.name, shape, info.dtype))
        return args

    def get_inputs(self) -> list[NodeArg]:
        """The one input."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """All outputs."""
        return self._outputs

    def get_providers(self) -> list[str]:
        """The one that there is."""
        return [_PROVIDER]

    def get_provider_options(self) -> dict[str, dict[Any, Any]]:
        """There are none."""
        return {_PROVIDER: {}}

    def set_providers(
        self, providers: Optional[Sequence[Any]] = None, provider_options: Any = None
    ) -> None:
        """Warns of a provider that is not there."""
        _check_providers(providers)

    def disable_fallback(self) -> None:
        """There is one provider: nothing to fall back to."""

    def enable_fallback(self) -> None:
        """There is one provider: nothing to fall back to."""

    def get_session_options(self) -> Any:
        """What the session was made with."""
        return self._options if self._options is not None else SessionOptions()

    def get_modelmeta(self) -> ModelMetadata:
        """What the model's file says of itself."""
        return model_metadata(self._model)

    def _for_size(self, size: tuple[int, int]) -> Runner:
        network = self._network
        if not network._bound or network.inputs[0].shape[2:] != size:
            self._runner = None
            network.close()
            self._network = network = Network(self._model, size, self._conv)
        if self._runner is None:
            self._runner = network.prepare(self._memory, self._threads)
        return self._runner

    def run(
        self,
        output_names: Optional[Iterable[str]],
        input_feed: Mapping[str, Any],
        run_options: Any = None,
    ) -> list[np.ndarray]:
        """Outputs by name (None or none: all), as a list; input_feed: the image by the input's name,
        float32 (1, channels, rows, columns), or a batch of images, which are run one by one."""
        name = self._inputs[0].name
        if list(input_feed) != [name]:
            raise UsageError(f"the network has one input, '{name}'; given: {list(input_feed)}")
        image = input_feed[name]
        shape = tuple(getattr(image, "shape", np.shape(image)))
        if len(shape) != 4:
            raise UsageError(f"input '{name}' is (images, channels, rows, columns); given: {shape}")
        names = list(output_names) if output_names is not None else []
        known = [output.name for output in self._outputs]
        unknown = [wanted for wanted in names if wanted not in known]
        if unknown:
            raise UsageError(f"no output {unknown[0]!r}; there are {', '.join(map(repr, known))}")
        with self._lock:
            runner = self._for_size((shape[2], shape[3]))
            results = runner.run(image, outputs=names or None, layout="NCHW")
        return [results[n] for n in (names or known)]


_sessions = weakref.WeakSet()


def _after_fork() -> None:
    """Another thread may have held a lock when the process forked."""
    for session in list(_sessions):
        session._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
