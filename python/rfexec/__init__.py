"""Runs convolutional networks on images of any size inside a fixed number of bytes, with exactly the
bits of the whole-image run.

    net = rfexec.open("net.onnx", size=(4096, 4096))
    maps = net.run(image, memory="64MiB")

Sizes are rows before columns, in pixels; memory is in bytes or text such as "64MiB"; values are
float32 in ONNX order, (1, channels, rows, columns).
"""

from . import _c
from ._errors import BudgetError, Cancelled, Error, RefusedError, SystemFailure, UsageError
from ._forecast import Forecast
from ._network import Network, Runner, TensorInfo, open, picture_size
from ._onnxruntime import InferenceSession

__version__ = _c.text(_c.library.rfx_version())
__all__ = [
    "BudgetError",
    "Cancelled",
    "Error",
    "Forecast",
    "InferenceSession",
    "Network",
    "RefusedError",
    "Runner",
    "SystemFailure",
    "TensorInfo",
    "UsageError",
    "open",
    "picture_size",
]

for _name in __all__:  # where users find them, also in tracebacks
    globals()[_name].__module__ = "rfexec"
