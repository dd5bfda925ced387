"""Runs convolutional networks on images of any size inside a fixed number of bytes, with exactly the
bits of the whole-image run.

    net = rfexec.open("net.onnx", size=(4096, 4096))
    maps = net.run(image, memory="64MiB")

Sizes are (rows, columns) in pixels. Memory is a number of bytes or a text such as "64MiB". Values
are float32 in ONNX order, (1, channels, rows, columns), unless a text says otherwise.
"""

from . import _c
from ._conversions import to_coco, to_supervision
from ._errors import BudgetError, Cancelled, Error, RefusedError, SystemFailure, UsageError
from ._files import File
from ._forecast import Forecast
from ._network import Network, Runner, TensorInfo, open
from ._masks import Mask
from ._model import Model, Plan
from ._modelmeta import ModelMetadata
from ._onnxruntime import (
    ExecutionMode,
    GraphOptimizationLevel,
    InferenceSession,
    RunOptions,
    SessionOptions,
    get_all_providers,
    get_available_providers,
    get_device,
    set_default_logger_severity,
    set_default_logger_verbosity,
)
from ._parts import Part, Round
from ._pictures import Picture, picture_size
from ._reports import Layer, Layers, Stage, Stages
from ._steps import Step

__version__ = _c.text(_c.library.rfx_version())
__all__ = [
    "BudgetError",
    "Cancelled",
    "Error",
    "ExecutionMode",
    "File",
    "Forecast",
    "GraphOptimizationLevel",
    "InferenceSession",
    "Layer",
    "Layers",
    "Mask",
    "Model",
    "ModelMetadata",
    "Network",
    "Part",
    "Picture",
    "Plan",
    "RefusedError",
    "Round",
    "RunOptions",
    "Runner",
    "SessionOptions",
    "Stage",
    "Stages",
    "Step",
    "SystemFailure",
    "TensorInfo",
    "UsageError",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "open",
    "picture_size",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "to_coco",
    "to_supervision",
]

for _name in __all__:  # the name that users import, also in tracebacks
    globals()[_name].__module__ = "rfexec"


def __getattr__(name: str) -> object:
    """Imports rfexec.dask at its first use, because it imports dask."""
    if name == "dask":
        import importlib

        return importlib.import_module(".dask", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
