"""Models: a name, a path, or a model in memory."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Optional, Union

import numpy as np

from ._call import Call
from ._errors import UsageError
from ._sizes import c_name

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


class Origin:
    """A model as C opens it: a name, or the bytes of an .onnx file, which live as long as this object.

    Attributes:
        shown: the model as messages and __repr__ show it.
    """

    def __init__(self, model: Model) -> None:
        self._name: Optional[bytes] = None
        if isinstance(model, (str, os.PathLike)):
            self.shown = os.fspath(model)
            self._name = c_name(model, "model")
            if isinstance(model, os.PathLike) and b"/" not in self._name:
                self._name = b"./" + self._name  # a file, even if a built-in network has that name
        else:
            self._bytes = model_bytes(model)
            self.shown = f"<{self._bytes.size:,} bytes>"

    def open(self, by_name: Any, by_bytes: Any, options: Any) -> ctypes.c_void_p:
        """Calls the C function for a name or the one for bytes. Returns the handle."""
        handle, call = ctypes.c_void_p(), Call()
        if self._name is not None:
            call.path = self._name
            call.make(by_name, self._name, options, ctypes.byref(handle))
        else:
            data = self._bytes
            call.make(by_bytes, data.ctypes.data, data.size, options, ctypes.byref(handle))
        return handle
