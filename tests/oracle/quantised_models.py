"""8-bit networks through rfexec and through the integer kernels of ONNX Runtime: every byte must be the same.

    quantised_models.py build/rfexec [--seeds 2]     RFX_CASES sets the number too: about 230 cases a seed
    quantised_models.py -                            checks only the formulas of this file against ONNX Runtime

Single operators are written in both forms: as QOperator nodes (QLinearConv, QLinearAdd, QLinearGlobalAveragePool,
QGemm) and as float operators between DequantizeLinear and QuantizeLinear (QDQ), which ONNX Runtime joins to the
former. Networks come from onnxruntime.quantization and run under several plans. The class Reference computes each
model with numpy by the formulas that ONNX Runtime follows. A mismatch is printed with what the formulas say.

Half of the scales are in simple ratios, so that many values lie half-way between two integers: there the order of
operations decides. All formulas are float32, each operation rounded once:
  QuantizeLinear    saturate(rne(x / s) + z); rne rounds half to even
  Conv, Gemm        saturate(rne(float(sum + bias) * ((alpha * xs) * ws / ys)) + zy); the sum is of int32
  Add               saturate(rne(fma(A, ra, fma(B, rb, zc - fma(za, ra, zb * rb))))) of ra = sa / sc, rb = sb / sc;
                    A is the first input, or the larger one where the other is broadcast
  GlobalAveragePool saturate(rne(float(sum - n * zx) * (xs / (ys * n))) + zy)

ONNX Runtime needs two session options on x86-64 to compute what the standard says:
  - session.x64quantprecision for uint8 maps. Without it, processors without VNNI add pairs of products of uint8 and
    int8 in 16 bits, and saturate. It refuses int8 maps, weights that two nodes share, and scales per channel without
    zero points.
  - session.qdqisint8allowed for int8 maps. Without it a Conv in QDQ form is computed in float32.

Left out, because ONNX Runtime computes them in float32 or against the standard:
  - Conv, Relu, QuantizeLinear where the zero point is not the type's lowest value; Conv, Clip, QuantizeLinear where
    the quantised range does not lie within the clip: differs in about 1 of 20,000 values, near ties;
  - Conv of which the output's type is not the input's; Conv without QuantizeLinear behind it;
  - Gemm of alpha other than 1 in QDQ form (in QGemm it is compared), or of weights without zero points;
  - a bias of a Conv with a zero point, or a scale that is not input's times weight's (a Gemm ignores that scale);
  - GlobalAveragePool, Flatten, QuantizeLinear without a pair in between;
  - Resize linear: differs from the standard by 1, and uint8 is truncated.
On processors other than x86-64 ONNX Runtime rounds Add and GlobalAveragePool in fixed point: the formulas are the
expected values there.
"""

import argparse
import json
import logging
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import typing

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

import rfexec_cli

f32 = np.float32
TYPES = {"u8": np.uint8, "s8": np.int8}
CASES_OF_A_SEED = 230  # about
FORMS = ("qoperator", "qdq")
# Of an operator that is to be joined, these must not be left in the graph that ONNX Runtime runs.
FLOAT_OPERATORS = {"Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "Add", "GlobalAveragePool", "Relu", "Clip"}
OPSETS = (13, 17, 19, 21)
ZEROS_LEFT_OUT = (17, 21)  # int8 models of these opsets leave zero points of 0 out where a Conv's weights are made
SOME_PLANS = ([], ["--tiles", "2x3"], ["--bands", "3"])
ALL_PLANS = [plan + ["--threads", threads] for threads in ("1", "2")
             for plan in (["--untiled"], ["--row-by-row"], ["--tiles", "3x2"], ["--bands", "8"],
                          ["--bands", "4", "--strips", "2"], ["--bands", "4", "--tight"], ["--memory", "smallest"])]


# The formulas


def fma(a, b, c):
    """a * b + c, rounded once: the product of float32 is exact in float64."""
    return (np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)).astype(f32)


def saturate(values, dtype):
    ends = np.iinfo(dtype)
    return np.clip(values, ends.min, ends.max).astype(dtype)


class Quantised(typing.NamedTuple):
    """A DequantizeLinear that nobody has computed yet."""
    q: np.ndarray
    scale: np.ndarray
    zero: np.ndarray

    def centred(self):
        return self.q.astype(np.int64) - self.zero.astype(np.int64)

    def real(self):
        return self.centred().astype(f32) * self.scale


class Joined(typing.NamedTuple):
    """An operator of quantised inputs that waits for the scale and the zero point of its output."""
    quantise: typing.Callable
    real: typing.Callable


def along(value, axis, rank):
    """A scale or zero point as an array that is broadcast along `axis`."""
    value = np.asarray(value)
    return value.reshape([-1 if i == axis else 1 for i in range(rank)]) if value.size > 1 else value.reshape(())


def windows(x, kernel, attrs, fill):
    """Yields (row, column, the pixels under this element of the kernel) of an NCHW map."""
    top, left, bottom, right = attrs.get("pads", [0] * 4)
    (down, over), (high, wide) = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    rows = (x.shape[2] - (kernel[0] - 1) * high - 1) // down + 1
    columns = (x.shape[3] - (kernel[1] - 1) * wide - 1) // over + 1
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            yield i, j, x[:, :, i * high:i * high + (rows - 1) * down + 1:down,
                          j * wide:j * wide + (columns - 1) * over + 1:over]


class Reference:
    """Computes a quantised model; its methods are named like the operators."""

    def run(self, model, image):
        values = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
        values[model.graph.input[0].name] = image
        for node in model.graph.node:
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            outputs = getattr(self, node.op_type)(attrs, *[values[name] if name else None for name in node.input])
            values.update(zip(node.output, outputs if isinstance(outputs, list) else [outputs]))
        outputs = [values[output.name] for output in model.graph.output]
        return [value if isinstance(value, np.ndarray) else value.real() for value in outputs]

    def QuantizeLinear(self, _, x, scale, zero=np.uint8(0)):
        if isinstance(x, Joined):
            return x.quantise(scale, zero)
        if isinstance(x, Quantised):
            if x.scale == scale and x.zero == zero:
                return x.q
            x = x.real()
        limited = np.clip(np.rint((x / scale).astype(f32)).astype(np.float64), -2.0**31, 2.0**31)
        return saturate(limited + float(zero), zero.dtype)

    def DequantizeLinear(self, attrs, q, scale, zero=None):
        axis = attrs.get("axis", 1) % max(q.ndim, 1)
        return Quantised(q, along(scale, axis, q.ndim), along(q.dtype.type(0) if zero is None else zero, axis, q.ndim))

    @staticmethod
    def sums(total, scale):
        """Sums of products, of which one is worth `scale`."""
        total = total.astype(f32)
        return Joined(lambda to, zero: saturate(np.rint(total * (scale / to)).astype(np.float64) + float(zero),
                                                zero.dtype), lambda: total * scale)

    @staticmethod
    def bias(value, scale):
        if value is None:
            return 0
        if isinstance(value, Quantised):
            return value.q.astype(np.int64)
        if value.dtype == np.int32:
            return value.astype(np.int64)
        return np.rint(value / scale.reshape(-1)).astype(np.int64)

    def Conv(self, attrs, x, w, bias=None):
        group, weight, scale = attrs.get("group", 1), w.centred(), x.scale * along(w.scale, 0, 1)
        ic, oc = weight.shape[1], weight.shape[0] // group
        total = 0
        for i, j, pixels in windows(x.centred(), weight.shape[2:], attrs, 0):
            total = total + np.concatenate([
                np.einsum("oc,nchw->nohw", weight[g * oc:(g + 1) * oc, :, i, j], pixels[:, g * ic:(g + 1) * ic])
                for g in range(group)], 1)
        if bias is not None:
            total += self.bias(bias, scale).reshape(-1, 1, 1)
        return self.sums(total, along(scale.reshape(-1), 0, 3))

    def QLinearConv(self, attrs, x, xs, xz, w, ws, wz, ys, yz, bias=None):
        weight = Quantised(w, along(ws, 0, 4), along(wz, 0, 4))
        return self.Conv(attrs, Quantised(x, xs, xz), weight, bias).quantise(ys, yz)

    def Gemm(self, attrs, x, w, bias=None):
        weight = w.centred().T if attrs.get("transB", 0) else w.centred()
        scale = (f32(attrs.get("alpha", 1)) * x.scale) * w.scale.reshape(-1)
        return self.sums(x.centred() @ weight + self.bias(bias, scale), scale)

    def QGemm(self, attrs, x, xs, xz, w, ws, wz, bias, ys, yz):
        axis = 0 if attrs.get("transB", 0) else 1
        return self.Gemm(attrs, Quantised(x, xs, xz), Quantised(w, along(ws, axis, 2), along(wz, axis, 2)),
                         bias).quantise(ys, yz)

    def Add(self, _, a, b):
        if a.q.size < b.q.size:
            a, b = b, a

        def quantise(scale, zero):
            ra, rb = a.scale / scale, b.scale / scale
            fix = f32(zero) - fma(a.zero, ra, f32(b.zero) * rb)
            return saturate(np.rint(fma(a.q, ra, fma(b.q, rb, fix))), zero.dtype)

        return Joined(quantise, None)

    def QLinearAdd(self, _, a, sa, za, b, sb, zb, sc, zc):
        return self.Add(None, Quantised(a, sa, za), Quantised(b, sb, zb)).quantise(sc, zc)

    def GlobalAveragePool(self, _, x):
        total, count = x.centred().sum((2, 3), keepdims=True).astype(f32), f32(x.q.shape[2] * x.q.shape[3])
        return Joined(lambda scale, zero: saturate(
            np.rint(total * (x.scale / (scale * count))).astype(np.float64) + float(zero), zero.dtype), None)

    def QLinearGlobalAveragePool(self, _, x, xs, xz, ys, yz):
        return self.GlobalAveragePool(None, Quantised(x, xs, xz)).quantise(ys, yz)

    def Relu(self, _, x):
        return Joined(lambda scale, zero: np.maximum(x.quantise(scale, zero), zero), None)

    def Clip(self, _, x, low, high):
        return Joined(lambda scale, zero: np.clip(
            x.quantise(scale, zero), self.QuantizeLinear(None, low, scale, zero),
            self.QuantizeLinear(None, high, scale, zero)), None)

    def MaxPool(self, attrs, x):
        if isinstance(x, Quantised):
            return x._replace(q=self.MaxPool(attrs, x.q))
        return np.max([pixels for _, _, pixels in windows(x, attrs["kernel_shape"], attrs, np.iinfo(x.dtype).min)], 0)

    def Flatten(self, attrs, x):
        if isinstance(x, Quantised):
            return x._replace(q=self.Flatten(attrs, x.q))
        return x.reshape(x.shape[0], -1)

    def Reshape(self, attrs, x, shape):
        if isinstance(x, Quantised):
            return x._replace(q=self.Reshape(attrs, x.q, shape))
        return x.reshape(shape)

    def Split(self, attrs, x, parts):
        return np.split(x, np.cumsum(parts)[:-1], attrs["axis"])


# Models of a few operators


class Map(typing.NamedTuple):
    """A quantised map of a model."""
    name: str
    scale: np.float32
    zero: np.generic


class Model:
    """Writes the nodes of a model in one of the two forms."""

    def __init__(self, form, kind, opset):
        self.form, self.dtype, self.opset = form, TYPES[kind], opset
        self.nodes, self.constants, self.outputs = [], [], []

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, operator, *inputs, outputs=1, **attrs):
        """Adds a node. Inputs are names, maps or constants; returns the name of its output, or a list of names."""
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(
            operator, [value if isinstance(value, str) else self.constant(value) for value in inputs], names, **attrs))
        if operator.startswith(("QLinearAdd", "QLinearGlobal", "QGemm")):
            self.nodes[-1].domain = "com.microsoft"
        return names[0] if outputs == 1 else names

    def quantise(self, name, scale, zero):
        if zero is None:
            return Map(self.node("QuantizeLinear", name, scale), scale, zero)
        return Map(self.node("QuantizeLinear", name, scale, zero), scale, zero)

    def real(self, x):
        return self.node("DequantizeLinear", *(x if x.zero is not None else x[:2]))

    def output(self, name, kind):
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def weighted(self, operator, x, w, bias, to, activation, attrs):
        """Conv or Gemm: w is (values, scales, zero points), `to` the output's (scale, zero point)."""
        values, scales, zeros = w
        axis = {"axis": 1 if operator == "Gemm" and not attrs.get("transB") else 0} if scales.size > 1 else {}
        if self.form == "qoperator":
            more = [] if bias is None else [bias]
            if operator == "Conv":
                return Map(self.node("QLinearConv", *x, *w, *to, *more, **attrs), *to)
            return Map(self.node("QGemm", *x, *w, *(more or [""]), *to, **attrs), *to)
        leave_out = operator == "Conv" and self.dtype == np.int8 and self.opset in ZEROS_LEFT_OUT and not np.any(zeros)
        zeros = [] if leave_out else [zeros]
        inputs = [self.real(x), self.node("DequantizeLinear", values, scales, *zeros, **axis)]
        if bias is not None and bias.dtype == np.int32:
            inputs.append(self.node("DequantizeLinear", bias, x.scale * scales, **({"axis": 0} if axis else {})))
        elif bias is not None:
            inputs.append(bias)
        name = self.node(operator, *inputs, **attrs)
        if activation is not None:
            name = self.node(*activation[:1], name, *activation[1:])
        return self.quantise(name, *to)

    def conv(self, x, w, bias, to, activation=None, **attrs):
        return self.weighted("Conv", x, w, bias, to, activation, attrs)

    def gemm(self, x, w, bias, to, **attrs):
        return self.weighted("Gemm", x, w, bias, to, None, attrs)

    def add(self, a, b, to):
        if self.form == "qoperator":
            return Map(self.node("QLinearAdd", *a, *b, *to), *to)
        return self.quantise(self.node("Add", self.real(a), self.real(b)), *to)

    def mean(self, x, to):
        if self.form == "qoperator":
            return Map(self.node("QLinearGlobalAveragePool", *x, *to, channels_last=0), *to)
        return self.quantise(self.node("GlobalAveragePool", self.real(x)), *to)

    def keep(self, operator, x, *more, **attrs):
        """MaxPool, Flatten or Reshape: the output has the input's scale and zero point."""
        if self.form == "qoperator":
            return x._replace(name=self.node(operator, x.name, *more, **attrs))
        return self.quantise(self.node(operator, self.real(x), *more, **attrs), *x[1:])

    def finish(self, y, shape, as_bytes):
        """The model, of which the output is the map y in bytes or in floats."""
        if as_bytes:
            self.output(y.name, helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype)))
        else:
            self.output(self.real(y), TensorProto.FLOAT)
        return self.model(shape)

    def model(self, shape):
        graph = helper.make_graph(self.nodes, "quantised",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], self.outputs,
                                  self.constants)
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", self.opset),
                                                                      helper.make_opsetid("com.microsoft", 1)])


class Draw:
    """Random values of one case, from its name and its seed."""

    def __init__(self, name, seed, dtype):
        self.random = np.random.default_rng([seed, *name.encode()])
        self.dtype, self.ends, self.simple = dtype, np.iinfo(dtype), seed % 2 == 0

    def integer(self, low, high):
        """From low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def choice(self, values):
        return values[self.integer(0, len(values) - 1)]

    def values(self, *shape, dtype=None, extremes=False):
        ends = np.iinfo(dtype or self.dtype)
        if extremes:
            return self.random.choice([ends.min, ends.max], shape).astype(dtype or self.dtype)
        return self.random.integers(ends.min, ends.max + 1, shape).astype(dtype or self.dtype)

    def zero(self):
        """A zero point: the lowest, the highest or any."""
        any_value = self.integer(self.ends.min, self.ends.max)
        return self.dtype(self.choice([self.ends.min, self.ends.max] + [any_value] * 4))

    def scale(self):
        return f32(self.integer(1, 100) / 1000 if self.simple else self.random.uniform(0.001, 0.1))

    def near(self, scale):
        """A scale of a few times the given one, or of a part of it."""
        ratios = [0.25, 0.5, 1, 1.5, 2, 2.5, 3, 0.75, 0.1, 0.2, 0.3, 1 / 3, 0.6, 0.7]
        return f32(float(scale) * (self.choice(ratios) if self.simple else self.random.uniform(0.1, 3)))

    def weight(self, shape, dtype, per_channel, axis=0):
        """Values, scales, zero points of weights."""
        scale = f32(self.scale() / f32(8))
        count = shape[axis]
        zero = dtype(0 if dtype == np.int8 else self.integer(100, 150))
        if not per_channel:
            return self.values(*shape, dtype=dtype), scale, zero
        scales = np.array([scale * f32(self.choice([1, 0.5, 0.3, 1 / 3, 0.7])) for _ in range(count)], f32)
        return self.values(*shape, dtype=dtype), scales, np.full(count, zero)

    def target(self, x, w, terms, zero=None):
        """Scale and zero point for sums of so many products: about a fifth of the values saturates."""
        unit = float(x.scale) * float(np.max(w[1]))
        ratio = max(70.0 * 70.0 * np.sqrt(terms) / 90.0, 2.0)
        ratio = 2.0 * np.round(ratio / 2.0) if self.simple else ratio
        return f32(unit * ratio), self.zero() if zero is None else zero

    def bias(self, count, ratio):
        return self.random.uniform(-60.0 * ratio, 60.0 * ratio, count).astype(np.int32)


def as_image(values, scale, zero):
    """Floats that QuantizeLinear takes back to these values."""
    return (values.astype(np.int64) - int(zero)).astype(f32) * scale


class Case(typing.NamedTuple):
    name: str
    kind: str
    model: onnx.ModelProto
    image: np.ndarray
    plans: typing.Sequence = SOME_PLANS


def pair_cases(seed):
    """QuantizeLinear and DequantizeLinear by themselves; both outputs."""
    for kind, dtype in TYPES.items():
        for opset in (13, 19):
            for at in ("lowest", "highest", "any") + (("left out",) if kind == "u8" else ()):
                name = f"pair {kind} opset {opset} zero point {at}"
                draw = Draw(name, seed, dtype)
                zero = {"lowest": dtype(draw.ends.min), "highest": dtype(draw.ends.max), "any": draw.zero(),
                        "left out": None}[at]
                scale = draw.scale()
                halves = (np.arange(-600, 600) / 2).astype(f32) * scale
                image = np.concatenate([
                    halves, np.nextafter(halves, f32(np.inf)), np.nextafter(halves, f32(-np.inf)),
                    draw.random.uniform(-300, 300, 3993).astype(f32) * scale,
                    np.array([np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, -0.0], f32)]).reshape(1, 4, 38, 50)
                model = Model("qdq", kind, opset)
                y = model.quantise("x", scale, zero)
                model.output(y.name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
                model.output(model.real(y), TensorProto.FLOAT)
                yield Case(f"{name}, seed {seed}", kind, model.model(image.shape), image)


# Scales (a, b, sum) and zero points of sums that tell every other order of operations from the formula.
TELLING = {
    "u8": (((0.007, 0.00525, 0.0007), (140, 231, 126)), ((0.006, 0.0045, 0.009), (83, 218, 63)),
           ((0.026, 0.039, 0.0156), (91, 116, 124)), ((0.085, 0.02125, 0.0595), (166, 105, 72))),
    "s8": (((0.044, 0.11, 0.0264), (-106, 70, 39)), ((0.013, 0.0325, 0.039), (72, -22, 15)),
           ((0.045, 0.0675, 0.135), (40, 41, 19)), ((0.095, 0.0285, 0.285), (9, 64, 19))),
}

# name: (groups, channels in, channels out, kernel, attributes); None: drawn
CONVS = {
    "1x1": (1, 24, 40, (1, 1), {}),
    "1x1 odd": (1, 7, 19, (1, 1), {}),
    "1x1 stride": (1, 16, 33, (1, 1), {"strides": [2, 2]}),
    "3x3": (1, 16, 24, (3, 3), {"pads": [1] * 4}),
    "3x3 stride": (1, 9, 17, (3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
    "first": (1, 3, 16, (3, 3), {"pads": [0, 0, 1, 1], "strides": [2, 2]}),
    "7x7": (1, 3, 20, (7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
    "dilated": (1, 8, 12, (3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
    "uneven": (1, 5, 11, (2, 5), {"pads": [0, 2, 1, 1], "strides": [1, 2], "dilations": [2, 1]}),
    "depthwise": (32, 32, 32, (3, 3), {"pads": [1] * 4}),
    "depthwise stride": (13, 13, 13, (3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
    "depthwise 5x5": (24, 24, 24, (5, 5), {"pads": [2] * 4}),
    "depthwise dilated": (17, 17, 17, (3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
    "multiplier": (6, 6, 18, (3, 3), {"pads": [1] * 4}),
    "groups": (4, 16, 24, (3, 3), {"pads": [1] * 4}),
    "groups odd": (3, 15, 9, (1, 1), {}),
    "extremes": (1, 40, 12, (3, 3), {"pads": [1] * 4}),  # only the ends of both types
    "extremes depthwise": (18, 18, 18, (3, 3), {"pads": [1] * 4}),
    "ties": (1, 1, 64, (1, 1), {}),
    "ties depthwise": (40, 40, 40, (1, 1), {}),
}


def few(draw, w):
    """Weights of a few steps around the zero point."""
    return (draw.random.integers(-3, 4, w[0].shape) + int(np.max(w[2]))).astype(w[0].dtype)


def conv_case(form, kind, shape_name, seed, per_channel, weights, bias, activation):
    words = [form, kind, "conv", shape_name, weights, "per channel" if per_channel else "per tensor",
             {None: "no bias"}.get(bias, f"{bias} bias")] + ([activation] if activation else [])
    name = " ".join(words)
    draw = Draw(name, seed, TYPES[kind])
    group, ic, oc, kernel, attrs = CONVS[shape_name]
    shape = (1, ic, draw.integer(11, 23), draw.integer(11, 23))
    model = Model(form, kind, OPSETS[seed % 4])
    image_scale, image_zero = draw.scale(), draw.zero()
    x = model.quantise("x", image_scale, image_zero)
    w = draw.weight((oc, ic // group, *kernel), TYPES[weights], per_channel)
    if shape_name.startswith("ties"):  # many sums half-way between two steps
        w = (few(draw, w), *w[1:])
    lowest = draw.dtype(draw.ends.min)
    extremes = shape_name.startswith("extremes")
    if extremes:
        w = (draw.values(*w[0].shape, dtype=w[0].dtype.type, extremes=True), *w[1:])
    to = draw.target(x, w, ic // group * kernel[0] * kernel[1], lowest if activation else None)
    if shape_name.startswith("ties"):
        to = (f32(to[0] * f32(draw.choice([0.02, 0.1, 1]))), to[1])
    ratio = float(to[0]) / (float(x.scale) * float(np.mean(w[1])))
    value = None if bias is None else draw.bias(oc, ratio)
    if bias == "float":
        value = value.astype(f32) * (x.scale * w[1])
    act = {None: None, "relu": ("Relu",),
           "clip": ("Clip", f32(0), f32(float(to[0]) * 256))}[activation]
    y = model.conv(x, w, value, to, act, **({"group": group} if group > 1 else {}), **attrs)
    image = as_image(draw.values(*shape, extremes=extremes), image_scale, image_zero)
    return Case(f"{name}, seed {seed}", kind, model.finish(y, shape, draw.integer(0, 1)), image)


def conv_cases(seed):
    for index, shape_name in enumerate(CONVS):
        for form in FORMS:
            for kind in TYPES:
                per_channel, weights = bool((seed + index) % 2), "s8"
                bias = ("int32", None, "int32", "float" if form == "qdq" else "int32")[(seed + index) % 4]
                activation = (None, None, "relu", "clip")[(seed // 2 + index) % 4] if form == "qdq" else None
                yield conv_case(form, kind, shape_name, seed, per_channel, weights, bias, activation)
            yield conv_case(form, "u8", shape_name, seed, bool(seed % 2), "u8", "int32", None)


def add_cases(seed):
    """Both inputs come from channels of one image, or the second is a constant."""
    for form in FORMS:
        for kind, dtype in TYPES.items():
            for shape_name in ("pairs", "odd", "itself", "constant", "per channel", "per channel first", "one element"):
                name = f"{form} {kind} add {shape_name}"
                draw = Draw(name, seed, dtype)
                model = Model(form, kind, OPSETS[seed % 4])
                scales = [draw.scale()]
                scales += [draw.near(scales[0]), draw.near(scales[0])]
                zeros = [draw.zero() for _ in range(3)]
                if draw.simple:
                    scales, zeros = TELLING[kind][seed // 2 % 4]
                    scales, zeros = [f32(scale) for scale in scales], [dtype(zero) for zero in zeros]
                all_values = np.arange(draw.ends.min, draw.ends.max + 1).astype(dtype)
                if shape_name == "pairs":  # of all values
                    first = np.broadcast_to(all_values.reshape(1, 1, -1, 1), (1, 1, 256, 256))
                    second = first.transpose(0, 1, 3, 2)
                elif shape_name.startswith("per channel"):
                    first = np.broadcast_to(all_values.reshape(1, 1, 8, 32), (1, 40, 8, 32))
                    second = draw.values(1, 40, 8, 32)
                else:
                    shape = (1, draw.integer(2, 9), draw.integer(5, 20), draw.integer(5, 20))
                    first, second = draw.values(*shape), draw.values(*shape)
                image = as_image(first, scales[0], zeros[0])
                if shape_name in ("pairs", "odd"):
                    image = np.concatenate([image, as_image(second, scales[1], zeros[1])], 1)
                    parts = model.node("Split", "x", np.array([first.shape[1]] * 2), outputs=2, axis=1)
                    a = model.quantise(parts[0], scales[0], zeros[0])
                    b = model.quantise(parts[1], scales[1], zeros[1])
                else:
                    a = model.quantise("x", scales[0], zeros[0])
                    constant = {"constant": second, "one element": second[:, :1, :1, :1]}.get(
                        shape_name, second[:, :, :1, :1])
                    b = a if shape_name == "itself" else Map(model.constant(constant), scales[1], zeros[1])
                if shape_name.endswith("first"):
                    a, b = b, a
                y = model.add(a, b, (scales[2], zeros[2]))
                yield Case(f"{name}, seed {seed}", kind, model.finish(y, image.shape, draw.integer(0, 1)), image)


def head_cases(seed):
    """GlobalAveragePool, Gemm, MaxPool, and what a classifier ends with."""
    for form in FORMS:
        for kind, dtype in TYPES.items():
            for rows, columns in ((1, 1), (2, 3), (7, 7), (10, 10), (13, 21), (64, 48)):
                name = f"{form} {kind} mean of {rows}x{columns}"
                draw = Draw(name, seed, dtype)
                x, model = (draw.scale(), draw.zero()), Model(form, kind, OPSETS[seed % 4])
                values = np.linspace(draw.ends.min, draw.ends.max, 150).reshape(1, -1, 1, 1) + \
                    draw.random.integers(-20, 21, (1, 150, rows, columns))
                y_scale = draw.near(x[0])
                if draw.simple:  # a step of the output is a small even number of steps of the sum
                    step = 2 * draw.integer(2, 6)
                    x = (x[0], dtype(draw.ends.min + draw.integer(100, 150)))
                    values = int(x[1]) + np.rint(draw.random.normal(0, 60 * step / np.sqrt(rows * columns),
                                                                    (1, 150, rows, columns)))
                    y_scale = f32(float(x[0]) * step / (rows * columns))
                values = saturate(values, dtype)
                y = model.mean(model.quantise("x", *x), (y_scale, draw.zero()))
                yield Case(f"{name}, seed {seed}", kind, model.finish(y, values.shape, draw.integer(0, 1)),
                           as_image(values, *x), ([],))
            for shape_name in ("gemm", "gemm columns", "gemm no bias", "gemm ties", "head"):
                yield gemm_case(form, kind, shape_name, seed, 1)
            if form == "qoperator":
                for shape_name in ("gemm alpha", "gemm alpha ties"):
                    yield gemm_case(form, kind, shape_name, seed, f32((0.7, 0.5, 1 / 3, 3)[seed % 4]))
            for attrs in ({"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}, {"kernel_shape": [2, 2]},
                          {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [0, 1, 1, 1]}):
                name = f"{form} {kind} MaxPool {attrs}"
                draw = Draw(name, seed, dtype)
                x, model = (draw.scale(), draw.zero()), Model(form, kind, OPSETS[seed % 4])
                shape = (1, draw.integer(1, 20), draw.integer(9, 20), draw.integer(9, 20))
                y = model.keep("MaxPool", model.quantise("x", *x), **attrs)
                yield Case(f"{name}, seed {seed}", kind, model.finish(y, shape, draw.integer(0, 1)),
                           as_image(draw.values(*shape), *x))


def gemm_case(form, kind, shape_name, seed, alpha):
    name = f"{form} {kind} {shape_name}"
    draw = Draw(name, seed, TYPES[kind])
    head, ties = shape_name == "head", shape_name.endswith("ties")
    shape = (1, draw.integer(3, 40), *((9, 14) if head else (draw.integer(1, 3), draw.integer(1, 3))))
    model = Model(form, kind, OPSETS[seed % 4])
    x_scale, x_zero = draw.scale(), draw.zero()
    x = model.quantise("x", x_scale, x_zero)
    if head:
        x = model.mean(x, (draw.near(x_scale), draw.zero()))
    terms = shape[1] * (1 if head else shape[2] * shape[3])
    if seed % 2:
        x = model.keep("Flatten", x)
    else:
        x = model.keep("Reshape", x, np.array([1, terms]))
    columns = shape_name == "gemm columns"
    count = 5000 if ties else draw.integer(10, 300)
    w = draw.weight((terms, count) if columns else (count, terms), np.int8, draw.integer(0, 1), 1 if columns else 0)
    to = draw.target(x, w, terms)
    if ties:  # many sums half-way between two steps
        w = (few(draw, w), *w[1:])
        to = (f32(to[0] * f32(draw.choice([0.02, 0.1, 1]) * float(alpha))), to[1])
    bias = None if shape_name == "gemm no bias" else draw.bias(
        count, float(to[0]) / float(alpha) / float(x.scale) / float(np.max(w[1])))
    attrs = {} if columns else {"transB": 1}
    if alpha != 1:
        attrs["alpha"] = float(alpha)
    y = model.gemm(x, w, bias, to, **attrs)
    image = as_image(draw.values(*shape), x_scale, x_zero)
    return Case(f"{name}, seed {seed}", kind, model.finish(y, shape, draw.integer(0, 1)), image, ([],))


def chain_cases(seed):
    """Maps that two nodes read, and that are outputs too; a Conv of a single pixel."""
    for form in FORMS:
        for kind, dtype in TYPES.items():
            name = f"{form} {kind} chain"
            draw, model, shape = Draw(name, seed, dtype), Model(form, kind, OPSETS[seed % 4]), (1, 6, 31, 37)
            image = as_image(draw.values(*shape), draw.scale(), draw.zero())
            x = model.quantise("x", draw.scale(), draw.zero())
            x = wide = next_conv(draw, model, x, 6, 20, 3)
            x = next_conv(draw, model, x, 20, 20, 3, group=20)
            x = next_conv(draw, model, x, 20, 20, 1)
            x = model.add(x, wide, (f32(x.scale * f32(1.5)), draw.zero()))
            x = model.keep("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
            model.output(wide.name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
            model.output(x.name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
            x = model.mean(x, (f32(x.scale / f32(8)), dtype(draw.ends.min + 128)))
            x = next_conv(draw, model, x, 20, 30, 1)
            yield Case(f"{name}, seed {seed}", kind, model.finish(x, shape, draw.integer(0, 1)), image, ALL_PLANS)


def next_conv(draw, model, x, ic, oc, size, group=1):
    """A Conv of random weights that keeps the size of the map."""
    w = draw.weight((oc, ic // group, size, size), np.int8, draw.integer(0, 1))
    to = draw.target(x, w, ic // group * size * size, draw.dtype(draw.ends.min + draw.integer(90, 160)))
    bias = draw.bias(oc, float(to[0]) / float(x.scale) / float(np.max(w[1])))
    return model.conv(x, w, bias, to, pads=[size // 2] * 4, group=group)


# Networks of onnxruntime.quantization


class Network:
    """Writes a float network with random weights."""

    def __init__(self, seed):
        self.random, self.nodes, self.constants, self.channels = np.random.default_rng(seed), [], [], {"x": 3}

    def node(self, operator, *inputs, **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], f"{operator}{len(self.nodes)}", **attrs))
        self.channels[name] = self.channels.get(inputs[0])
        return name

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value, f32), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def conv(self, x, oc, size, stride=1, group=1, end=None):
        ic = self.channels[x] // group
        w = self.constant(self.random.standard_normal((oc, ic, size, size)) * np.sqrt(2 / (ic * size * size)))
        y = self.node("Conv", x, w, self.constant(self.random.standard_normal(oc) * 0.2), strides=[stride] * 2,
                      pads=[size // 2] * 4, group=group)
        self.channels[y] = oc
        if end == "Clip":
            return self.node("Clip", y, self.constant(0), self.constant(6))
        return y if end is None else self.node(end, y)

    def inverted_residual(self, x, oc, stride, times):
        wide = self.channels[x] * times
        y = self.conv(x, wide, 1, end="Clip")
        y = self.conv(y, wide, 3, stride, wide, "Clip")
        y = self.conv(y, oc, 1)
        return self.node("Add", x, y) if stride == 1 and oc == self.channels[x] else y

    def basic_block(self, x, oc, stride):
        y = self.conv(self.conv(x, oc, 3, stride, end="Relu"), oc, 3)
        shortcut = x if stride == 1 and oc == self.channels[x] else self.conv(x, oc, 1, stride)
        return self.node("Relu", self.node("Add", y, shortcut))

    def head(self, x, classes):
        y = self.node("Flatten", self.node("GlobalAveragePool", x))
        w = self.constant(self.random.standard_normal((classes, self.channels[x])) * 0.3)
        return self.node("Gemm", y, w, self.constant(self.random.standard_normal(classes)), transB=1)

    def save(self, y, path, shape):
        graph = helper.make_graph(self.nodes, "network",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)], self.constants)
        onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)


def mobile_map(net):
    x = net.conv("x", 16, 3, 2, end="Clip")
    for oc, stride, times in ((12, 1, 1), (20, 2, 4), (20, 1, 4), (28, 1, 3)):
        x = net.inverted_residual(x, oc, stride, times)
    return net.conv(x, 40, 1, end="Clip")


def mobile(net):
    return net.head(mobile_map(net), 25)


def residual_map(net):
    x = net.node("MaxPool", net.conv("x", 16, 7, 2, end="Relu"), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    return net.basic_block(net.basic_block(x, 16, 1), 24, 2)


def residual(net):
    return net.head(residual_map(net), 25)


class Images(quantization.CalibrationDataReader):
    """A few random images for the ranges of the maps."""

    def __init__(self, random, shape):
        self.images = [random.standard_normal(shape).astype(f32) for _ in range(3)]

    def get_next(self):
        return {"x": self.images.pop()} if self.images else None


def network_cases(seed, folder):
    shape = (1, 3, 101, 118)
    for build in (mobile_map, mobile, residual_map, residual):
        for form in (quantization.QuantFormat.QDQ, quantization.QuantFormat.QOperator):
            for kind, activations in (("u8", quantization.QuantType.QUInt8), ("s8", quantization.QuantType.QInt8)):
                name = f"network {build.__name__} {form.name} {kind}, seed {seed}"
                random = np.random.default_rng([seed, *name.encode()])
                net = Network(seed)
                net.save(build(net), folder / "float.onnx", shape)
                quantization.quantize_static(
                    folder / "float.onnx", folder / "bytes.onnx", Images(random, shape), quant_format=form,
                    per_channel=build in (mobile, residual_map) or seed % 2 == 1, activation_type=activations,
                    weight_type=quantization.QuantType.QInt8)
                yield Case(name, kind, onnx.load(folder / "bytes.onnx"), random.standard_normal(shape).astype(f32),
                           ALL_PLANS)


# Comparisons


def expected_of(case, folder):
    """Outputs of ONNX Runtime, and which operators it left in float32 (on x86-64)."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.add_session_config_entry(
        "session.x64quantprecision" if case.kind == "u8" else "session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    outputs = session.run(None, {"x": case.image})
    left = {node.op_type for node in onnx.load(folder / "optimised.onnx").graph.node} & FLOAT_OPERATORS
    return outputs, left


def difference(ours, theirs):
    """Words, or None where all bits are the same."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {ours.shape} instead of {theirs.dtype} {theirs.shape}"
    if np.array_equal(ours, theirs):
        return None
    wrong = ours != theirs
    at = tuple(int(i[0]) for i in np.nonzero(wrong))
    return f"{int(wrong.sum())} of {wrong.size} differ, first {list(at)}: {ours[at]} instead of {theirs[at]}"


def smallest_budget(program, folder, threads):
    done = subprocess.run([program, "run", folder / "case.onnx", folder / "input.npy", "--memory", "1MiB", "--json",
                           "--threads", threads, "-o", folder / "output.npy"], capture_output=True, text=True,
                          check=False)
    return str(json.loads(done.stdout)["smallest_bytes"])


def check_plan(program, folder, case, plan, expected, formula):
    """What is wrong with rfexec's outputs under this plan, or None."""
    options = [smallest_budget(program, folder, plan[-1]) if word == "smallest" else word for word in plan]
    try:
        _, ours = rfexec_cli.run(program, folder / "case.onnx", case.image, folder, options)
    except (rfexec_cli.Refused, RuntimeError) as error:
        return str(error).rsplit("output.npy: ", maxsplit=1)[-1]  # without the command
    for k, output in enumerate(case.model.graph.output):
        text = difference(ours[output.name], expected[k])
        if text is not None:
            if difference(formula[k], expected[k]) is None:
                return f"{text}; the formula says the same as ONNX Runtime"
            like = difference(ours[output.name], formula[k]) is None
            return f"{text}; the formula says {'the same as rfexec' if like else 'something else'}"
    return None


def check(program, folder, case):
    """What is wrong, or None."""
    formula = Reference().run(case.model, case.image)
    expected = formula
    if platform.machine() in ("x86_64", "AMD64"):
        expected, left = expected_of(case, folder)
        if left:
            return f"{case.name}: ONNX Runtime computes {', '.join(sorted(left))} in float32"
    if program == "-":
        texts = [difference(ours, theirs) for ours, theirs in zip(formula, expected)]
        return next((f"{case.name}: the formula: {text}" for text in texts if text is not None), None)
    onnx.save(case.model, folder / "case.onnx")
    np.save(folder / "input.npy", case.image)
    for plan in case.plans:
        text = check_plan(program, folder, case, plan, expected, formula)
        if text is not None:
            return f"{case.name}{' under ' if plan else ''}{' '.join(plan)}: {text}"
    return None


def all_cases(seeds, folder):
    for seed in range(seeds):
        yield from pair_cases(seed)
        yield from conv_cases(seed)
        yield from add_cases(seed)
        yield from head_cases(seed)
        yield from chain_cases(seed)
    for seed in range((seeds + 1) // 2):
        yield from network_cases(seed, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=max(2, int(os.environ.get("RFX_CASES", "0")) // CASES_OF_A_SEED))
    parser.add_argument("--only", default="", help="check only cases of which the names contain this text")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # of onnxruntime.quantization: that models may be prepared first
    passed = failed = 0
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        for case in all_cases(options.seeds, folder):
            if options.only not in case.name:
                continue
            text = check(options.program, folder, case)
            passed, failed = passed + (text is None), failed + (text is not None)
            if text is not None:
                print(text)
    print(f"quantised models: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
