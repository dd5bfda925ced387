"""Models: a name, a path, or a model in memory."""

from __future__ import annotations

import os
from typing import Any, Union

import numpy as np

from ._errors import UsageError

# Any: onnx.ModelProto, and other objects with SerializeToString.
Model = Union[str, os.PathLike[str], bytes, bytearray, memoryview, Any]


def model_bytes(model: Any) -> np.ndarray:
    """The bytes of an .onnx file without a copy; an onnx.ModelProto is serialized first."""
    serialize = getattr(model, "SerializeToString", None)
    if serialize is not None:
        model = serialize()
    try:
        view = memoryview(model)
    except TypeError:
        raise UsageError(
            f"model is a {type(model).__name__}: a name or path, the bytes of an .onnx file, or an "
            "onnx.ModelProto"
        ) from None
    if not view.c_contiguous:
        raise UsageError("model is a memoryview with gaps: its bytes must follow each other")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)
