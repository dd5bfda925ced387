"""Runs models that are in memory with librfexec.so, in this process: for scripts with thousands of small models."""

import ctypes
import pathlib

import numpy as np

MAX_DIMS = 8  # RFX_MAX_DIMS of rfexec.h
WHY_BYTES = 512  # of struct rfx_why


class Failed(Exception):
    """A call of the library failed; the text is its reason."""


class Library:
    """The library beside the program `program`, as the build directory has them."""

    def __init__(self, program):
        self.library = ctypes.CDLL(str(pathlib.Path(program).resolve().parent / "librfexec.so"))
        self.library.rfx_network_free.argtypes = [ctypes.c_void_p]
        for name in ("rfx_network_output_count", "rfx_network_input_shape"):
            getattr(self.library, name).argtypes = [ctypes.c_void_p] + [ctypes.c_void_p] * (name[-1] == "e")
        self.library.rfx_network_output_shape.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
        for name in ("rfx_network_output_type", "rfx_network_output_name"):
            getattr(self.library, name).argtypes = [ctypes.c_void_p, ctypes.c_int]
            getattr(self.library, name).restype = ctypes.c_char_p
        self.library.rfx_network_open_memory.argtypes = [
            ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p]
        self.library.rfx_network_run_values.argtypes = [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_void_p,
            ctypes.c_char_p]

    def run(self, model, image):
        """The outputs of a model (its bytes) for a float32 array 1xCxHxW, as {name: array of the declared type}."""
        why = ctypes.create_string_buffer(WHY_BYTES)
        network = ctypes.c_void_p()
        if self.library.rfx_network_open_memory(model, len(model), None, ctypes.byref(network), why):
            raise Failed(why.value.decode())
        try:
            return self.outputs_of(network, np.ascontiguousarray(image, np.float32), why)
        finally:
            self.library.rfx_network_free(network)

    def outputs_of(self, network, image, why):
        dims = (ctypes.c_int64 * MAX_DIMS)()
        self.library.rfx_network_input_shape(network, dims)
        if tuple(dims[:4]) != image.shape:
            raise Failed(f"the model takes {tuple(dims[:4])}, the image is {image.shape}")
        count = self.library.rfx_network_output_count(network)
        floats, types, names = [], [], []
        for k in range(count):
            rank = self.library.rfx_network_output_shape(network, k, dims)
            floats.append(np.empty(dims[:rank], np.float32))
            types.append(np.dtype(self.library.rfx_network_output_type(network, k).decode()))
            names.append(self.library.rfx_network_output_name(network, k).decode())
        arrays = (ctypes.c_void_p * count)(*[values.ctypes.data for values in floats])
        if self.library.rfx_network_run_values(network, image.ctypes.data, arrays, count, None, why):
            raise Failed(why.value.decode())
        return {name: values.astype(kind) for name, kind, values in zip(names, types, floats)}
