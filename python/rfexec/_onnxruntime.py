"""The part of ONNX Runtime's interface that most programs use."""

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
    """Returns ["CPUExecutionProvider"]."""
    return [_PROVIDER]


def get_all_providers() -> list[str]:
    """Returns ["CPUExecutionProvider"]."""
    return [_PROVIDER]


def get_device() -> str:
    """Returns "CPU" as ONNX Runtime does."""
    return "CPU"


def set_default_logger_severity(severity: int) -> None:
    """Ignored: the library logs nothing."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Ignored: the library logs nothing."""


class GraphOptimizationLevel(enum.IntEnum):
    """Ignored: a network always runs in the same way."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Accepted and ignored."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    """As onnxruntime.SessionOptions. `intra_op_num_threads` is the session's number of threads if `threads`
    is 0. Everything else is ignored.
    """

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
        """Stores the entry; it has no effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Returns a stored entry."""
        return self._entries[key]


class RunOptions:
    """As onnxruntime.RunOptions; ignored."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False


class NodeArg:
    """Name, shape and type of an input or output, as in ONNX Runtime."""

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
    """Runs a model as onnxruntime.InferenceSession does:

        session = rfexec.InferenceSession("net.onnx", memory="256MiB")
        result = session.run(None, {"image": array})

    The session plans and packs weights at the first image of a size and keeps both until an image of
    another size comes. Threads may share a session: their runs go one after the other, each with all
    threads. A provider other than CPUExecutionProvider gives a warning.

    Args:
        path_or_bytes: a path, the bytes of an .onnx file, or a built-in name.
        sess_options: SessionOptions; only the number of threads counts.
        providers, provider_options: ignored, apart from the warning.
        memory, threads: as in Network.plan().
        conv, int8: as in rfexec.open().
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
        int8: str = "ort",
    ) -> None:
        _check_providers(providers)
        self._model = path_or_bytes
        if not isinstance(path_or_bytes, (str, os.PathLike)):
            self._model = model_bytes(path_or_bytes)
        self._options = sess_options
        self._memory, self._conv, self._int8 = memory, conv, int8
        self._threads = threads or int(getattr(sess_options, "intra_op_num_threads", 0) or 0)
        self._runner: Optional[Runner] = None
        self._lock = threading.Lock()  # protects the network and runner of the last size
        self._network = Network(self._model, None, conv, int8=int8)
        self._inputs = self._args(self._network.inputs)
        self._outputs = self._args(self._network.outputs)
        _sessions.add(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a rfexec.InferenceSession cannot be copied or pickled: it holds memory of the C library; "
            "make another where it is needed"
        )

    def _args(self, infos: Iterable[Any]) -> list[NodeArg]:
        """Names the dimensions that depend on the image's size "rows" and "columns"."""
        args = []
        for info in infos:
            shape = list(info.shape)
            if len(shape) == 4 and shape[2:] == [None, None]:
                shape[2:] = ["rows", "columns"]
            args.append(NodeArg(info.name, shape, info.dtype))
        return args

    def get_inputs(self) -> list[NodeArg]:
        """Returns the one input in a list."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """Returns all outputs."""
        return self._outputs

    def get_providers(self) -> list[str]:
        """Returns ["CPUExecutionProvider"]."""
        return [_PROVIDER]

    def get_provider_options(self) -> dict[str, dict[Any, Any]]:
        """Returns an empty dict for CPUExecutionProvider."""
        return {_PROVIDER: {}}

    def set_providers(
        self, providers: Optional[Sequence[Any]] = None, provider_options: Any = None
    ) -> None:
        """Warns if a provider other than CPUExecutionProvider is requested."""
        _check_providers(providers)

    def disable_fallback(self) -> None:
        """Ignored: there is one provider."""

    def enable_fallback(self) -> None:
        """Ignored: there is one provider."""

    def get_session_options(self) -> Any:
        """Returns the options that the session was made with."""
        return self._options if self._options is not None else SessionOptions()

    def get_modelmeta(self) -> ModelMetadata:
        """Returns the metadata of the model's file."""
        return model_metadata(self._model)

    def _for_size(self, size: tuple[int, int]) -> Runner:
        network = self._network
        if not network._bound or network.inputs[0].shape[2:] != size:
            self._runner = None
            network.close()
            self._network = network = Network(
                self._model, size, self._conv, int8=self._int8
            )
        if self._runner is None:
            self._runner = network.prepare(self._memory, self._threads)
        return self._runner

    def run(
        self,
        output_names: Optional[Iterable[str]],
        input_feed: Mapping[str, Any],
        run_options: Any = None,
    ) -> list[np.ndarray]:
        """Runs an image or a batch.

        Args:
            output_names: names of the wanted outputs; None or empty: all.
            input_feed: {input name: array}, float32 (images, channels, rows, columns). A batch runs image
                by image.
            run_options: ignored.

        Returns:
            A list of arrays in the order of output_names.

        Raises:
            The exceptions of Network.run().
        """
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
    """In a child process: another thread may have held a lock at the fork."""
    for session in list(_sessions):
        session._lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
