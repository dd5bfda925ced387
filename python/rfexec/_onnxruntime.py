"""The part of ONNX Runtime's InferenceSession that most programs use."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional

import numpy as np

from ._errors import RefusedError, UsageError
from ._models import Model
from ._network import Memory, Network, Runner


class NodeArg:
    """An input or output, as ONNX Runtime describes it."""

    def __init__(self, name: str, shape: list) -> None:
        self.name = name
        self.shape = shape
        self.type = "tensor(float)"

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class InferenceSession:
    """Runs an .onnx file, its bytes, or a built-in network as onnxruntime.InferenceSession does:

        session = rfexec.InferenceSession("net.onnx", memory="256MiB")
        result = session.run(None, {"image": array})

    memory and threads as in Network.plan. The network is planned, and its weights are packed, at
    the first image of a size, and kept until one of another size comes. sess_options, providers and
    provider_options are taken and not used.
    """

    def __init__(
        self,
        path_or_bytes: Model,
        sess_options: Any = None,
        providers: Any = None,
        provider_options: Any = None,
        *,
        memory: Memory = None,
        threads: int = 0,
        conv: str = "direct",
    ) -> None:
        self._model = path_or_bytes
        self._memory, self._threads, self._conv = memory, threads, conv
        self._runner: Optional[Runner] = None
        self._sized = True
        try:
            self._network = Network(path_or_bytes, None, conv)
        except RefusedError:  # perhaps without a size of its own: names come with any
            self._network = Network(path_or_bytes, (256, 256), conv)
            self._sized = False

    def _args(self, infos: Iterable[Any]) -> list[NodeArg]:
        unknown = ["rows", "columns"]
        return [
            NodeArg(
                info.name,
                list(info.shape)
                if self._sized or len(info.shape) != 4
                else [*info.shape[:2], *unknown],
            )
            for info in infos
        ]

    def get_inputs(self) -> list[NodeArg]:
        """The one input."""
        return self._args(self._network.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """All outputs."""
        return self._args(self._network.outputs)

    def _for_size(self, size: tuple[int, int]) -> Runner:
        if self._network.inputs[0].shape[2:] != size:
            self._runner = None
            self._network = Network(self._model, size, self._conv)
        if self._runner is None:
            self._runner = self._network.prepare(self._memory, self._threads)
        return self._runner

    def run(
        self,
        output_names: Optional[Iterable[str]],
        input_feed: Mapping[str, Any],
        run_options: Any = None,
    ) -> list[np.ndarray]:
        """Outputs by name (None: all), as a list; input_feed: the image by the input's name, float32
        (1, channels, rows, columns), or a batch of images, which are run one by one."""
        name = self._network.inputs[0].name
        if list(input_feed) != [name]:
            raise UsageError(f"the network has one input, '{name}'; given: {list(input_feed)}")
        image = input_feed[name]
        shape = tuple(getattr(image, "shape", np.shape(image)))
        if len(shape) != 4:
            raise UsageError(f"input '{name}' is (images, channels, rows, columns); given: {shape}")
        names = None if output_names is None else list(output_names)
        results = self._for_size(shape[2:]).run(image, outputs=names)
        return [results[n] for n in (names if names is not None else results)]
