#!/usr/bin/env python3
"""Rounding errors of the built-in networks against a float64 reference, as a markdown table.

Every built-in is exported as ONNX and run on random images by rfexec with each of its convolution
backends and by ONNX Runtime, all in float32, and by the reference evaluator of the onnx package
with weights, image and arithmetic in float64. An error is the largest difference of an output
relative to its largest magnitude; of several outputs the worst counts; over the images the
geometric mean is taken. The last row is the geometric mean of each column's ratio to ONNX Runtime.
Needs numpy, onnx and onnxruntime.

    python tools/scripts/measure_errors.py [--rfexec build/rfexec] [--size 160x224] [--images 4]
        [MODEL ...]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

BACKENDS = ("direct", "winograd", "openblas")


def padded(x, pads, auto_pad, kernel, fill):
    """The map with its border, for explicit pads."""
    if auto_pad not in (None, "", "NOTSET", "VALID"):
        raise ValueError(f"auto_pad {auto_pad}")
    top, left, bottom, right = pads if pads is not None else (0,) * 4
    assert len(kernel) == 2
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)


def taps(x, kernel, strides, dilations):
    """Yields (ky, kx, the pixels that this tap of all output positions reads)."""
    (kh, kw), (sh, sw), (dh, dw) = kernel, strides or (1, 1), dilations or (1, 1)
    oh = (x.shape[2] - dh * (kh - 1) - 1) // sh + 1
    ow = (x.shape[3] - dw * (kw - 1) - 1) // sw + 1
    for ky in range(kh):
        for kx in range(kw):
            y0, x0 = ky * dh, kx * dw
            yield ky, kx, x[:, :, y0 : y0 + sh * (oh - 1) + 1 : sh, x0 : x0 + sw * (ow - 1) + 1 : sw]


class Conv(OpRun):
    """As matrix products per tap: the package's own takes minutes."""

    op_domain = ""

    def _run(self, x, w, b=None, auto_pad=None, dilations=None, group=None, kernel_shape=None,
             pads=None, strides=None):
        groups, kernel = group or 1, w.shape[2:]
        x = padded(x, pads, auto_pad, kernel, 0.0)
        icg, ocg = w.shape[1], w.shape[0] // groups
        out = None
        for ky, kx, part in taps(x, kernel, strides, dilations):
            shape = part.shape
            part = part.reshape(groups, icg, -1)
            product = np.matmul(w[:, :, ky, kx].reshape(groups, ocg, icg), part)
            out = product if out is None else out + product
        out = out.reshape(1, w.shape[0], *shape[2:])
        return (out if b is None else out + b.reshape(1, -1, 1, 1),)


class MaxPool(OpRun):
    op_domain = ""

    def _run(self, x, auto_pad=None, ceil_mode=None, dilations=None, kernel_shape=None, pads=None,
             storage_order=None, strides=None):
        pads, strides = list(pads or (0,) * 4), strides or (1, 1)
        if ceil_mode:  # windows that begin inside the map or its left border
            for axis in range(2):
                reach = (dilations or (1, 1))[axis] * (kernel_shape[axis] - 1) + 1
                full = x.shape[2 + axis] + pads[axis] + pads[2 + axis] - reach
                last = -(-full // strides[axis])
                if last * strides[axis] >= x.shape[2 + axis] + pads[axis]:
                    last -= 1
                pads[2 + axis] += max(0, last * strides[axis] - full)
        x = padded(x, pads, auto_pad, kernel_shape, -np.inf)
        out = None
        for _, _, part in taps(x, kernel_shape, strides, dilations):
            out = part if out is None else np.maximum(out, part)
        return (out,)


class AveragePool(OpRun):
    op_domain = ""

    def _run(self, x, auto_pad=None, ceil_mode=None, count_include_pad=None, dilations=None,
             kernel_shape=None, pads=None, strides=None):
        if ceil_mode:
            raise ValueError("AveragePool with ceil_mode")
        ones = np.ones_like(x[:, :1])
        x = padded(x, pads, auto_pad, kernel_shape, 0.0)
        ones = padded(ones, pads, auto_pad, kernel_shape, 1.0 if count_include_pad else 0.0)
        out = sum(part for _, _, part in taps(x, kernel_shape, strides, dilations))
        return (out / sum(part for _, _, part in taps(ones, kernel_shape, strides, dilations)),)


def as_double(tensor):
    if tensor.data_type != TensorProto.FLOAT:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def double_model(model):
    """The same network with every float32 turned into float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    graph = wide.graph
    for tensor in graph.initializer:
        tensor.CopyFrom(as_double(tensor))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                attribute.t.CopyFrom(as_double(attribute.t))
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    del graph.value_info[:]
    for value in list(graph.input) + list(graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return wide


def rfexec_outputs(program, model, image, backend, names, folder):
    for old in folder.glob("out*.npy"):
        old.unlink()
    subprocess.run([program, "run", str(model), str(image), "--conv", backend, "--untiled", "-o",
                    str(folder / "out.npy")], check=True, capture_output=True)
    if len(names) == 1:
        return [np.load(folder / "out.npy")]
    return [np.load(folder / f"out.{name}.npy") for name in names]


def error(got, want):
    return max(float(np.abs(g.astype(np.float64) - w).max() / np.abs(w).max())
               for g, w in zip(got, want))


def export(program, name, size, path):
    """At the size, or at the network's own where it takes no other."""
    for option in (["--size", size], []):
        done = subprocess.run([program, "export", name, "-o", str(path)] + option,
                              capture_output=True, text=True)
        if done.returncode == 0:
            return
    sys.exit(f"{name}: {done.stderr}")


def measure(program, name, size, images, folder):
    path, image = folder / "model.onnx", folder / "image.npy"
    path.unlink(missing_ok=True)
    export(program, name, size, path)
    model = onnx.load(path)
    free = [1, 3] + [int(n) for n in size.split("x")]
    dims = model.graph.input[0].type.tensor_type.shape.dim
    shape = [d.dim_value or n for d, n in zip(dims, free)]
    feed, names = model.graph.input[0].name, [o.name for o in model.graph.output]
    reference = ReferenceEvaluator(double_model(model), new_ops=[Conv, MaxPool, AveragePool])
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rows = []
    for seed in range(images):
        pixels = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        np.save(image, pixels)
        want = reference.run(None, {feed: pixels.astype(np.float64)})
        assert all(w.dtype == np.float64 for w in want), "the reference is not in float64"
        rows.append([error(rfexec_outputs(program, path, image, b, names, folder), want)
                     for b in BACKENDS] + [error(session.run(None, {feed: pixels}), want)])
    return shape, np.exp(np.log(rows).mean(axis=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rfexec", default="build/rfexec")
    parser.add_argument("--size", default="160x224")
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("models", nargs="*", help="default: all built-ins")
    options = parser.parse_args()
    names = options.models
    if not names:
        listing = subprocess.run([options.rfexec, "models", "--json"], check=True, capture_output=True, text=True)
        names = [model["name"] for model in json.loads(listing.stdout)["models"]]
    print("| network | input | " + " | ".join(BACKENDS) + " | ONNX Runtime |")
    print("|---|---|" + "---|" * (len(BACKENDS) + 1))
    logs = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            shape, errors = measure(options.rfexec, name, options.size, options.images,
                                    pathlib.Path(folder))
            logs.append(np.log(errors / errors[-1]))
            cells = " | ".join(f"{e:.1e}" for e in errors)
            print(f"| {name} | {shape[2]}x{shape[3]} | {cells} |", flush=True)
    cells = " | ".join(f"{r:.2f}" for r in np.exp(np.mean(logs, axis=0)))
    print(f"| ratio to ONNX Runtime | | {cells} |")


if __name__ == "__main__":
    main()
