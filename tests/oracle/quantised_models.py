"""8-bit networks through rfexec and through the integer kernels of ONNX Runtime: every byte must be the same.

    quantised_models.py build/rfexec [--seeds 2]     RFX_CASES sets the number too: about 450 cases a seed
    quantised_models.py -                            checks only the formulas of this file against ONNX Runtime

Single operators are written in both forms: as QOperator nodes (QLinearConv, QLinearAdd, QGemm and so on) and as float
operators between DequantizeLinear and QuantizeLinear (QDQ). ONNX Runtime joins some of the latter to the former; for
the smaller ones the table OPERATORS says which. WITHIN_A_QUANTUM names those that are not compared byte by byte, and
why. Networks come from onnxruntime.quantization and run under several plans. The class Reference computes each model
with numpy by the formulas that ONNX Runtime follows. A mismatch is printed with what the formulas say.

Half of the scales are in simple ratios, so that many values lie half-way between two integers: there the order of
operations decides. All formulas are float32, each operation rounded once:
  QuantizeLinear    saturate(rne(x / s) + z); rne rounds half to even
  Conv, Gemm        saturate(rne(float(sum + bias) * ((alpha * xs) * ws / ys)) + zy); the sum is of int32
  Add               saturate(rne(fma(A, ra, fma(B, rb, zc - fma(za, ra, zb * rb))))) of ra = sa / sc, rb = sb / sc;
                    A is the first input, or the larger one where the other is broadcast
  GlobalAveragePool saturate(rne(float(sum - n * zx) * (xs / (ys * n))) + zy)
  Mul               saturate(rne(float((A - za) * (B - zb)) * (sa * sb / sc) + zc)), not fused
  AveragePool       saturate(rne(sum / n / ys + zy)) of dequantised values, added in the order of the kernel
  Softmax           saturate(rne(e * floor(1 / ys) / sum(e)) + zy); e is from a table of exp
  DynamicQuantizeLinear  s = (max(x, 0) - min(x, 0)) / 255, or 1; z = saturate(rne(-min(x, 0) / s)); as QuantizeLinear
  ConvInteger, MatMulInteger, Cast, Mul, Add    float(sum) * (xs * ws) + bias
  Gemm to floats    float(sum + bias) * ((alpha * xs) * ws)
  Concat, Sigmoid, LeakyRelu, and each operator that is not joined: quantise(f(dequantise))

ONNX Runtime needs two session options on x86-64 to compute what the standard says:
  - session.x64quantprecision for uint8 maps. Without it, processors without VNNI add pairs of products of uint8 and
    int8 in 16 bits, and saturate. It refuses int8 maps, weights that two nodes share, and scales per channel without
    zero points.
  - session.qdqisint8allowed for int8 maps. Without it a Conv in QDQ form is computed in float32.

Left out, because ONNX Runtime computes them in float32 or against the standard:
  - Conv, Relu, QuantizeLinear where the zero point is not the type's lowest value; Conv, Clip, QuantizeLinear where
    a bound of the clip is not quantised to an end of the type: differs in about 1 of 20,000 values, near ties;
  - Conv of which the output's type is not the input's; Conv without QuantizeLinear behind it;
  - Gemm of alpha other than 1 in QDQ form (in QGemm it is compared), or of weights without zero points;
  - a bias of a Conv with a zero point, or a scale that is not input's times weight's (a Gemm ignores that scale);
  - GlobalAveragePool, Flatten, QuantizeLinear without a pair in between;
  - Resize linear: differs from the standard by 1, and uint8 is truncated;
  - AveragePool of ceil_mode 1 with count_include_pad: windows beyond the pads are divided by the whole kernel;
  - Softmax of few values with an output scale below 1/256, of which the table overflows.
With --int8 spec, each case is compared with ONNX Runtime's float operators between DequantizeLinear and QuantizeLinear.

On processors other than x86-64 ONNX Runtime rounds Add and GlobalAveragePool in fixed point: the formulas are the
expected values there.
"""

import argparse
import json
import logging
import math
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
CASES_OF_A_SEED = 450  # about
FORMS = ("qoperator", "qdq")
# Of an operator that is to be joined, these must not be left in the graph that ONNX Runtime runs.
FLOAT_OPERATORS = {"Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "Add", "GlobalAveragePool", "Relu", "Clip",
                   "Mul", "Concat", "AveragePool", "Sigmoid", "LeakyRelu", "Softmax"}
OPSETS = (13, 17, 19, 21)
ZEROS_LEFT_OUT = (17, 21)  # int8 models of these opsets leave zero points of 0 out where a Conv's weights are made
SOME_PLANS = ([], ["--tiles", "2x3"], ["--bands", "3"])
# A DynamicQuantizeLinear needs its whole map: there are no tiles before it.
DYNAMIC_PLANS = ([], ["--bands", "3"], ["--row-by-row"], ["--bands", "4", "--strips", "2", "--threads", "2"],
                 ["--memory", "smallest", "--threads", "2"])
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
    total: np.ndarray | None = None  # the integer sums


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


def in_double(function):
    """A function of float32 that is computed in double precision and rounded once."""
    return lambda attrs, x: np.asarray(function(x.astype(np.float64)), np.float64).astype(f32)


def hard_sigmoid(attrs, x):
    return np.clip(f32(attrs.get("alpha", 1 / 6)) * x + f32(attrs.get("beta", 0.5)), f32(0), f32(1))


# Operators that compute each value by itself: quantise(f(dequantise)), joined or not. Of a Sigmoid in double precision
# about one byte in a million differs from ONNX Runtime's; none does in the first 100 seeds.
ELEMENTWISE = {
    "Abs": lambda attrs, x: np.abs(x),
    "Div": lambda attrs, a, b: a / b,
    "Elu": in_double(lambda x: np.where(x >= 0, x, np.expm1(x))),
    "Erf": in_double(np.vectorize(math.erf)),
    "Gelu": in_double(np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))),
    "HardSigmoid": hard_sigmoid,
    "HardSwish": lambda attrs, x: x * hard_sigmoid({}, x),
    "LeakyRelu": lambda attrs, x: np.where(x >= 0, x, f32(attrs["alpha"]) * x),
    "Max": lambda attrs, a, b: np.maximum(a, b),
    "Min": lambda attrs, a, b: np.minimum(a, b),
    "Neg": lambda attrs, x: -x,
    "PRelu": lambda attrs, x, slope: np.where(x >= 0, x, x * slope),
    "Sigmoid": in_double(lambda x: 1 / (1 + np.exp(-x))),
    "Sub": lambda attrs, a, b: a - b,
    "Tanh": in_double(np.tanh),
}


def shuffle(x, before, axes, after):
    return x.reshape(before).transpose(axes).reshape(after)


def depth_to_space(attrs, x):
    _, c, h, w = x.shape
    k = attrs["blocksize"]
    parts, axes = ((k, k, c // k // k), (0, 3, 4, 1, 5, 2)) if attrs["mode"] == b"DCR" else \
        ((c // k // k, k, k), (0, 1, 4, 2, 5, 3))
    return shuffle(x, (1, *parts, h, w), axes, (1, c // k // k, h * k, w * k))


def space_to_depth(attrs, x):
    _, c, h, w = x.shape
    k = attrs["blocksize"]
    return shuffle(x, (1, c, h // k, k, w // k, k), (0, 3, 5, 1, 2, 4), (1, c * k * k, h // k, w // k))


def cut(_, x, starts, ends, axes, steps):
    index = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


def pad(attrs, x, pads, value=None):
    mode = attrs.get("mode", b"constant").decode()
    return np.pad(x, list(zip(pads[:4], pads[4:])), mode, **({} if value is None else {"constant_values": value}))


def max_pool(attrs, x):
    least = -np.inf if x.dtype == f32 else np.iinfo(x.dtype).min
    return np.max([pixels for _, _, pixels in windows(x, attrs["kernel_shape"], attrs, least)], 0)


# Operators that only move values, or choose one: they give the same values of bytes and of floats.
MOVES = {
    "DepthToSpace": depth_to_space,
    "Flatten": lambda attrs, x: x.reshape(x.shape[0], -1),
    "GlobalMaxPool": lambda attrs, x: x.max((2, 3), keepdims=True),
    "MaxPool": max_pool,
    "Reshape": lambda attrs, x, shape: x.reshape(shape),
    "Resize": lambda attrs, x, roi, scales: x.repeat(int(scales[2]), 2).repeat(int(scales[3]), 3),
    "Slice": cut,
    "SpaceToDepth": space_to_depth,
    "Transpose": lambda attrs, x: x.transpose(attrs["perm"]),
}


class Reference:
    """Computes a quantised model; its methods are named like the operators."""

    def run(self, model, image):
        values = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
        values[model.graph.input[0].name] = image
        for node in model.graph.node:
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            outputs = self.operator(node.op_type)(attrs, *[values[name] if name else None for name in node.input])
            values.update(zip(node.output, outputs if isinstance(outputs, list) else [outputs]))
        outputs = [values[output.name] for output in model.graph.output]
        return [value if isinstance(value, np.ndarray) else value.real() for value in outputs]

    def operator(self, name):
        """A function of attributes and inputs."""
        if hasattr(self, name):
            return getattr(self, name)
        if name in MOVES:
            return lambda attrs, x, *more: (x._replace(q=MOVES[name](attrs, x.q, *more)) if isinstance(x, Quantised)
                                            else MOVES[name](attrs, x, *more))
        if name.startswith("QLinear"):  # of one input
            float_operator = self.operator(name.removeprefix("QLinear"))
            return lambda attrs, x, xs, xz, ys, yz: self.QuantizeLinear(
                None, float_operator(attrs, Quantised(x, xs, xz)), ys, yz)
        return lambda attrs, *inputs: ELEMENTWISE[name](attrs, *[x.real() for x in inputs])

    def QuantizeLinear(self, attrs, x, scale, zero=np.uint8(0)):
        if np.size(scale) > 1:
            return self.by_steps(attrs, x, scale, zero)
        if isinstance(x, Joined):
            return x.quantise(scale, zero)
        if isinstance(x, Quantised):
            if x.scale == scale and x.zero == zero:
                return x.q
            x = x.real()
        limited = np.clip(np.rint((x / scale).astype(f32)).astype(np.float64), -2.0**31, 2.0**31)
        return saturate(limited + float(zero), zero.dtype)

    @staticmethod
    def steps(attrs, x, value):
        """Several scales or zero points as an array that is broadcast with x."""
        block = attrs.get("block_size", 0)
        return value.repeat(block, attrs["axis"]) if block else along(value, attrs.get("axis", 1) % x.ndim, x.ndim)

    def by_steps(self, attrs, x, scale, zero):
        whole = np.rint((x / self.steps(attrs, x, scale)).astype(f32)).astype(np.float64)
        return saturate(whole + self.steps(attrs, x, zero), zero.dtype)

    def DequantizeLinear(self, attrs, q, scale, zero=None):
        if attrs.get("block_size", 0):
            return Quantised(q, self.steps(attrs, q, scale), self.steps(attrs, q, zero))
        axis = attrs.get("axis", 1) % max(q.ndim, 1)
        return Quantised(q, along(scale, axis, q.ndim), along(q.dtype.type(0) if zero is None else zero, axis, q.ndim))

    @staticmethod
    def sums(total, scale):
        """Sums of products, of which one is worth `scale`."""
        exact, total = total, total.astype(f32)
        return Joined(lambda to, zero: saturate(np.rint(total * (scale / to)).astype(np.float64) + float(zero),
                                                zero.dtype), lambda: total * scale, exact)

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

    def DynamicQuantizeLinear(self, _, x):
        low, high = min(x.min(), f32(0)), max(x.max(), f32(0))
        scale = f32(1) if low == high else (high - low) / f32(255)
        zero = saturate(np.rint(-low / scale), np.uint8)
        return [self.QuantizeLinear(None, x, scale, zero), np.asarray(scale), np.asarray(zero)]

    def ConvInteger(self, attrs, x, w, xz=np.uint8(0), wz=np.uint8(0)):
        one = f32(1)
        total = self.Conv(attrs, Quantised(x, one, xz), Quantised(w, one, along(wz, 0, 4)))
        return total.total.astype(np.int32)

    def MatMulInteger(self, _, x, w, xz=np.uint8(0), wz=np.uint8(0)):
        return ((x.astype(np.int64) - int(xz)) @ (w.astype(np.int64) - wz.astype(np.int64))).astype(np.int32)

    def Cast(self, _, x):
        return x.astype(f32)

    def QLinearMatMul(self, _, x, xs, xz, w, ws, wz, ys, yz):
        return self.sums(self.MatMulInteger(None, x, w, xz, wz), xs * ws).quantise(ys, yz)

    def Gemm(self, attrs, x, w, bias=None):
        weight = w.centred().T if attrs.get("transB", 0) else w.centred()
        scale = (f32(attrs.get("alpha", 1)) * x.scale) * w.scale.reshape(-1)
        return self.sums(x.centred() @ weight + self.bias(bias, scale), scale)

    def QGemm(self, attrs, x, xs, xz, w, ws, wz, bias=None, ys=None, yz=None):
        axis = 0 if attrs.get("transB", 0) else 1
        made = self.Gemm(attrs, Quantised(x, xs, xz), Quantised(w, along(ws, axis, 2), along(wz, axis, 2)), bias)
        return made.real() if ys is None else made.quantise(ys, yz)

    def Add(self, _, a, b):
        if isinstance(a, np.ndarray):
            return a + b
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

    def Mul(self, _, a, b):
        if isinstance(a, np.ndarray):
            return a * b
        product = (a.centred() * b.centred()).astype(f32)
        return Joined(lambda scale, zero: saturate(
            np.rint(product * (a.scale * b.scale / scale) + f32(zero)), zero.dtype), None)

    def QLinearMul(self, _, a, sa, za, b, sb, zb, sc, zc):
        return self.Mul(None, Quantised(a, sa, za), Quantised(b, sb, zb)).quantise(sc, zc)

    def AveragePool(self, attrs, x):
        kernel = attrs["kernel_shape"]
        ones, total, count = np.ones(x.q.shape, f32), f32(0), f32(0)
        for (_, _, pixels), (_, _, inside) in zip(windows(x.real(), kernel, attrs, 0), windows(ones, kernel, attrs, 0)):
            total, count = total + pixels, count + inside
        if attrs.get("count_include_pad", 0):
            count = f32(kernel[0] * kernel[1])
        return Joined(lambda scale, zero: saturate(np.rint(total / count / scale + f32(zero)), zero.dtype), None)

    def Softmax(self, attrs, x):
        axis = attrs["axis"]
        count = x.q.shape[axis]
        shift = max(math.log(np.finfo(f32).max / f32(count)) - 5, 0) / float(x.scale)
        table = np.exp((np.arange(256) - 255 + shift) * float(x.scale)).astype(f32)
        values = x.q.astype(np.int64)
        terms = table[values - values.max(axis, keepdims=True) + 255]
        total = np.add.accumulate(terms, axis).take([-1], axis)
        return Joined(lambda scale, zero: saturate(
            np.rint(terms * np.floor(f32(1) / scale) / total) + float(zero), zero.dtype), None)

    def Concat(self, attrs, *inputs):
        return np.concatenate([x.real() for x in inputs], attrs["axis"])

    def QLinearConcat(self, attrs, scale, zero, *inputs):
        parts = [Quantised(*inputs[i:i + 3]) for i in range(0, len(inputs), 3)]
        return self.QuantizeLinear(None, self.Concat(attrs, *parts), scale, zero)

    def BatchNormalization(self, attrs, x, gamma, beta, mean, variance):
        factor = gamma / np.sqrt(variance + f32(attrs["epsilon"]))
        term = beta - mean * factor
        return x.real() * factor.reshape(-1, 1, 1) + term.reshape(-1, 1, 1)

    def ConvTranspose(self, attrs, x, w, bias):
        """Of up to 128 channels: of more, the sums of 128 would be added."""
        pixels, weight = x.real(), w.real()
        (rows, columns), (down, over) = weight.shape[2:], attrs["strides"]
        high, wide = (pixels.shape[2] - 1) * down, (pixels.shape[3] - 1) * over
        total = np.zeros((1, weight.shape[1], high + rows, wide + columns), f32)
        for i in range(rows):
            for j in range(columns):
                term = f32(0)
                for c in range(weight.shape[0]):
                    term = fma(weight[c, :, i, j].reshape(-1, 1, 1), pixels[:, c:c + 1], term)
                total[:, :, i:i + high + 1:down, j:j + wide + 1:over] += term
        top, left, bottom, right = attrs["pads"]
        total = total[:, :, top:total.shape[2] - bottom, left:total.shape[3] - right]
        return total + bias.real().reshape(-1, 1, 1)

    def Pad(self, attrs, x, pads, value=None):
        if not isinstance(x, Quantised):
            return pad(attrs, x, pads, value)
        return x._replace(q=pad(attrs, x.q, pads)) if value is None else pad(attrs, x.real(), pads, value)

    def ReduceMean(self, _, x, axes=None):
        return x.real().astype(np.float64).mean((2, 3), keepdims=True).astype(f32)

    def Relu(self, _, x):
        if isinstance(x, Quantised):
            return np.maximum(x.real(), f32(0))
        if isinstance(x, np.ndarray):
            return np.maximum(x, f32(0))
        return Joined(lambda scale, zero: np.maximum(x.quantise(scale, zero), zero), None)

    def Clip(self, _, x, low, high):
        if isinstance(x, Quantised):
            return np.clip(x.real(), low, high)
        if isinstance(x, np.ndarray):
            return np.clip(x, low, high)
        return Joined(lambda scale, zero: np.clip(
            x.quantise(scale, zero), self.QuantizeLinear(None, low, scale, zero),
            self.QuantizeLinear(None, high, scale, zero)), None)

    def Split(self, attrs, x, parts):
        if isinstance(x, Quantised):
            return [x._replace(q=q) for q in self.Split(attrs, x.q, parts)]
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
        if operator.startswith("Q") and operator not in ("QuantizeLinear", "QLinearConv", "QLinearMatMul"):
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
            if to is None:  # to floats
                return Map(self.node("QGemm", *x, *w, *more, **attrs), None, None)
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

    def dynamic(self, operator, name, w, bias, **attrs):
        """ConvInteger or MatMulInteger as quantize_dynamic writes it; w is (values, scales, zero points)."""
        values, scales, zeros = w
        q, scale, zero = self.node("DynamicQuantizeLinear", name, outputs=3)
        total = self.node("Cast", self.node(operator, q, values, zero, zeros, **attrs), to=TensorProto.FLOAT)
        if operator == "ConvInteger" and scales.size > 1:
            scales = scales.reshape(-1, 1, 1)
        y = self.node("Mul", total, self.node("Mul", scale, scales))
        return y if bias is None else self.node("Add", y, bias)

    def conv(self, x, w, bias, to, activation=None, **attrs):
        return self.weighted("Conv", x, w, bias, to, activation, attrs)

    def gemm(self, x, w, bias, to, **attrs):
        return self.weighted("Gemm", x, w, bias, to, None, attrs)

    def apply(self, operator, inputs, to, *more, **attrs):
        """An operator of maps, which may have further inputs in QDQ form."""
        if self.form == "qoperator":
            maps = [value for x in inputs for value in x]
            attrs.update({"GlobalAveragePool": {"channels_last": 0}, "Softmax": {"opset": 13}}.get(operator, {}))
            return Map(self.node(f"QLinear{operator}", *(maps + list(to) if operator != "Concat" else list(to) + maps),
                                 **attrs), *to)
        return self.quantise(self.node(operator, *[self.real(x) for x in inputs], *more, **attrs), *to)

    def add(self, a, b, to):
        return self.apply("Add", (a, b), to)

    def mean(self, x, to):
        return self.apply("GlobalAveragePool", (x,), to)

    def keep(self, operator, x, *more, **attrs):
        """An operator of MOVES: the output has the input's scale and zero point."""
        if self.form == "qoperator":
            return x._replace(name=self.node(operator, x.name, *more, **attrs))
        return self.quantise(self.node(operator, self.real(x), *more, **attrs), *x[1:])

    def finish(self, y, shape, as_bytes):
        """The model, of which the output is the map y in bytes or in floats."""
        if y.scale is None:  # floats
            self.output(y.name, TensorProto.FLOAT)
        elif as_bytes:
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
    floats: typing.Sequence = ()  # what ONNX Runtime computes in float32
    share: float = 0  # so many of the bytes may differ by 1


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


def step_cases(seed):
    """QuantizeLinear and DequantizeLinear of 16 bits, of one scale per index of an axis, and per block."""
    for kind, dtype in {**TYPES, "u16": np.uint16, "s16": np.int16}.items():
        for axis, block in ((0, 0), (1, 0), (3, 0), (-1, 0), (1, 2), (2, 5)):
            if axis == 0 and dtype in TYPES.values():  # axis 0 stands for one scale
                continue
            name = f"steps {kind} axis {axis} block {block}"
            draw, model, shape = Draw(name, seed, dtype), Model("qdq", "u8", 21), [1, 4, 10, 7]
            form = [n // block if i == axis else n for i, n in enumerate(shape)] if block else [shape[axis]]
            scales = draw.random.uniform(0.001, 0.1, form if axis else ()).astype(f32)
            attrs = {"axis": axis} if axis else {}
            attrs.update({"block_size": block} if block else {})
            zeros = draw.values(*scales.shape)
            q = model.node("QuantizeLinear", "x", scales, zeros, **attrs)
            if dtype in TYPES.values():
                model.output(q, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
            model.output(model.node("DequantizeLinear", q, scales, zeros, **attrs), TensorProto.FLOAT)
            image = draw.random.uniform(-1.2, 1.2, shape) * 2.0**(8 * np.dtype(dtype).itemsize) * 0.05
            yield Case(f"{name}, seed {seed}", "u8", model.model(shape), image.astype(f32),
                       ([],) if block else SOME_PLANS)


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
           "clip": ("Clip", f32(0), f32(float(to[0]) * (256 if seed % 2 else 254.6)))}[activation]
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


def binary_scales(operator, draw, kind, seed):
    """Scales and zero points of two inputs and the output."""
    scales, zeros = [draw.scale()], [draw.zero() for _ in range(3)]
    if operator == "Mul":
        scales.append(f32(draw.choice([1 / 255, 1 / 128, 0.01, 0.02, 0.05, 1 / 3])) if draw.simple else draw.scale())
        ratio = draw.choice([2, 4, 6, 10, 12, 16, 20, 50, 64, 100]) if draw.simple else draw.random.uniform(2, 100)
        scales.append(f32(float(scales[0]) * float(scales[1]) * ratio))
    else:
        scales += [draw.near(scales[0]), draw.near(scales[0])]
    if operator == "Add" and draw.simple:
        scales, zeros = TELLING[kind][seed // 2 % 4]
        scales, zeros = [f32(scale) for scale in scales], [draw.dtype(zero) for zero in zeros]
    return scales, zeros


def binary_cases(operator, seed):
    """Both inputs come from channels of one image, or the second is a constant."""
    for form in FORMS:
        for kind, dtype in TYPES.items():
            for shape_name in ("pairs", "odd", "itself", "constant", "per channel", "per channel first", "one element"):
                name = f"{form} {kind} {operator.lower()} {shape_name}"
                draw = Draw(name, seed, dtype)
                model = Model(form, kind, OPSETS[seed % 4])
                scales, zeros = binary_scales(operator, draw, kind, seed)
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
                y = model.apply(operator, (a, b), (scales[2], zeros[2]))
                yield Case(f"{name}, seed {seed}", kind, model.finish(y, image.shape, draw.integer(0, 1)), image)


class Operator(typing.NamedTuple):
    """A small operator: how it is written, and how its output is quantised."""
    attrs: dict = {}
    more: typing.Sequence = ()  # further inputs
    qoperator: str = ""  # "QLinear": a node of this form exists; "bytes": it takes bytes as it is; "": only QDQ form
    joined: bool = False  # does ONNX Runtime join it in QDQ form?
    scale: str = "near"  # of the output: near the input's; "unit": for values below 1

    def forms(self):
        return FORMS if self.qoperator else ("qdq",)


PADS = np.array([0, 0, 1, 3, 0, 0, 2, 1])

# Compared byte by byte. Without `joined`, ONNX Runtime computes them in float32: each value by itself, so that there is
# no order of sums.
OPERATORS = {
    "Sigmoid": Operator(qoperator="QLinear", joined=True, scale="unit"),
    "LeakyRelu": Operator({"alpha": 0.1}, qoperator="QLinear", joined=True),
    "Softmax": Operator({"axis": 1}, qoperator="QLinear", joined=True, scale="unit"),
    "Softmax of rows": Operator({"axis": 3}, qoperator="QLinear", joined=True, scale="unit"),
    "Relu": Operator(), "Clip": Operator(more=(f32(0), f32(6))), "Tanh": Operator(scale="unit"),
    "HardSigmoid": Operator({"alpha": 1 / 6, "beta": 0.5}, scale="unit"), "HardSwish": Operator(),
    "Elu": Operator(), "Erf": Operator(scale="unit"), "Gelu": Operator(), "Abs": Operator(), "Neg": Operator(),
    "Transpose": Operator({"perm": [0, 1, 3, 2]}, qoperator="bytes"),
    "Slice": Operator(more=(np.array([1, 2]), np.array([7, 9]), np.array([2, 3]), np.array([2, 1])), qoperator="bytes"),
    "Pad": Operator(more=(PADS, f32(0))), "Pad of 0.3": Operator(more=(PADS, f32(0.3))),
    "Pad reflect": Operator({"mode": "reflect"}, (PADS,), "bytes"),
    "Pad edge": Operator({"mode": "edge"}, (PADS,), "bytes"),
    "Resize": Operator({"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
                       ("", np.array([1, 1, 2, 3], f32)), "bytes"),
    "DepthToSpace": Operator({"blocksize": 2, "mode": "DCR"}, qoperator="bytes"),
    "DepthToSpace CRD": Operator({"blocksize": 2, "mode": "CRD"}, qoperator="bytes"),
    "SpaceToDepth": Operator({"blocksize": 2}), "GlobalMaxPool": Operator(),
    "Concat": Operator(joined=True, qoperator="QLinear"), "Split": Operator(qoperator="bytes"),
    "AveragePool": Operator({"kernel_shape": [2, 2], "strides": [2, 2]}, qoperator="QLinear", joined=True),
    "AveragePool of padded": Operator({"kernel_shape": [3, 3], "pads": [1] * 4}, qoperator="QLinear", joined=True),
    "AveragePool with pads": Operator({"kernel_shape": [2, 5], "strides": [1, 2], "pads": [0, 2, 1, 1],
                                       "count_include_pad": 1}, qoperator="QLinear", joined=True),
    "BatchNormalization": Operator({"epsilon": 1e-5}),
    "Sub": Operator(), "Div": Operator(), "Max": Operator(), "Min": Operator(), "PRelu": Operator(),
}

# Not compared byte by byte: so many of the bytes may differ by 1, and why.
WITHIN_A_QUANTUM = {
    "ConvTranspose": (0.01, "not joined: a sum of float32, of which the order decides near a tie"),
    "ReduceMean": (0.1, "not joined: a sum of float32, of which the order decides near a tie"),
}


LATER = {"Gelu": 20, "HardSwish": 14}  # opsets
TWO_INPUTS = ("Concat", "Sub", "Div", "Max", "Min")


def small_cases(seed):
    """The operators of the two tables; each map has all values."""
    for name, operator in OPERATORS.items():
        for form in operator.forms():
            for kind in TYPES:
                yield small_case(name, operator, form, kind, seed)
    for kind in TYPES:
        yield transposed_case(kind, seed)
        yield mean_case(kind, seed)


def small_case(name, row, form, kind, seed):
    title, word = f"{form} {kind} {name}", name.split()[0]
    draw = Draw(title, seed, TYPES[kind])
    model = Model(form, kind, max(OPSETS[seed % 4], LATER.get(word, 0)))
    count = draw.integer(2, 9) * 4
    values = np.arange(draw.ends.min, draw.ends.max + 1) + draw.random.integers(0, 256, (count, 1))
    values = ((values - draw.ends.min) % 256 + draw.ends.min).astype(draw.dtype).reshape(1, count, 8, 32)
    scale, zero = draw.scale(), draw.zero()
    to = (draw.near(scale), draw.zero())
    if row.scale == "unit":
        to = (f32(draw.choice([1 / 256, 1 / 255, 1 / 128, 0.004]) if draw.simple else draw.random.uniform(0.004, 0.02)),
              draw.dtype(draw.ends.min) if word == "Softmax" else draw.zero())
    if word == "AveragePool" and draw.simple:  # a step of the output is a small even number of steps of the sum
        step = 2 * draw.integer(1, 6)
        zero = draw.dtype(draw.ends.min + draw.integer(100, 150))
        values = saturate(int(zero) + np.rint(draw.random.normal(0, 12 * step, values.shape)), draw.dtype)
        to = (f32(float(scale) * step / np.prod(row.attrs["kernel_shape"])), to[1])
    image = as_image(values, scale, zero)
    if word in TWO_INPUTS:
        y, image = two_inputs(word, draw, model, image, (scale, zero), to)
    elif word == "PRelu":
        slope = Map(model.constant(draw.values(count, 1, 1)), f32(draw.integer(1, 8) / 256), draw.zero())
        y = model.apply(word, (model.quantise("x", scale, zero), slope), to)
    elif word == "BatchNormalization":
        y = model.apply(word, (model.quantise("x", scale, zero),), to, *norm(draw, count, scale, to[0]), **row.attrs)
    else:
        x = model.quantise("x", scale, zero)
        if word == "Split":
            parts = np.array([count // 4, count - count // 4])
            names = model.node(word, x.name if form == "qoperator" else model.real(x), parts, outputs=2, axis=1)
            y = [x._replace(name=part) if form == "qoperator" else
                 model.quantise(part, *(x[1:] if draw.integer(0, 1) else to)) for part in names]
            model.output(y[0].name, helper.np_dtype_to_tensor_dtype(np.dtype(draw.dtype)))
            y = y[1]
        elif row.qoperator == "bytes" and (form == "qoperator" or draw.integer(0, 1)):
            y = model.keep(word, x, *row.more, **row.attrs)
        else:
            y = model.apply(word, (x,), to, *row.more, **row.attrs)
    in_bytes = draw.integer(0, 1) or word in WITHIN_A_QUANTUM
    return Case(f"{title}, seed {seed}", kind, model.finish(y, image.shape, in_bytes), image,
                floats=() if row.joined else FLOAT_OPERATORS, share=WITHIN_A_QUANTUM.get(word, (0,))[0])


def two_inputs(word, draw, model, image, a, to):
    """The map y of the two halves of an image, and the image."""
    b = (draw.near(a[0]), draw.zero())
    second = draw.values(*image.shape)
    if word == "Div":  # not by 0
        b = (b[0], draw.dtype(draw.ends.min))
        second = np.maximum(second, draw.ends.min + 1).astype(draw.dtype)
    if word == "Concat" and draw.integer(0, 2) == 0:  # nothing to do for this input
        b = to
    image = np.concatenate([image, as_image(second, *b)], 1)
    parts = model.node("Split", "x", np.array([second.shape[1]] * 2), outputs=2, axis=1)
    maps = [model.quantise(part, *how) for part, how in zip(parts, (a, b))]
    if word == "Concat":
        maps.append(maps[0])
    return model.apply(word, maps, to, **({"axis": 1} if word == "Concat" else {})), image


def norm(draw, count, x_scale, y_scale):
    """Parameters of a BatchNormalization; half-way values are frequent where the scales are simple."""
    if not draw.simple:
        return [draw.random.uniform(0.5, 2, count).astype(f32) for _ in range(4)]
    gamma = draw.random.choice([0.25, 0.5, 1, 1.5, 0.3], count) * float(y_scale) / float(x_scale)
    beta, mean = [draw.random.integers(-20, 21, count) * float(scale) for scale in (y_scale, x_scale)]
    return [value.astype(f32) for value in (gamma, beta, mean, np.ones(count))]


def transposed_case(kind, seed):
    name = f"qdq {kind} ConvTranspose"
    draw, kernel = Draw(name, seed, TYPES[kind]), (2, 3, 4, 9)[seed % 4]
    model, shape = Model("qdq", kind, OPSETS[seed % 4]), (1, draw.integer(3, 40), draw.integer(9, 15), 14)
    x = model.quantise("x", draw.scale(), draw.zero())
    w = draw.weight((shape[1], draw.integer(1, 12), kernel, kernel), np.int8, draw.integer(0, 1), 1)
    to = draw.target(x, w, shape[1] * kernel * kernel / 4)
    bias = draw.bias(w[0].shape[1], float(to[0]) / float(x.scale) / float(np.max(w[1])))
    axis = {"axis": 1} if w[1].size > 1 else {}
    y = model.node("ConvTranspose", model.real(x), model.node("DequantizeLinear", *w, **axis),
                   model.node("DequantizeLinear", bias, x.scale * w[1], **({"axis": 0} if axis else {})),
                   strides=[2, 2], pads=[(kernel - 1) // 2] * 4)
    return Case(f"{name}, seed {seed}", kind, model.finish(model.quantise(y, *to), shape, True),
                as_image(draw.values(*shape), x.scale, x.zero), floats=FLOAT_OPERATORS,
                share=WITHIN_A_QUANTUM["ConvTranspose"][0])


def mean_case(kind, seed):
    name = f"qdq {kind} ReduceMean"
    draw = Draw(name, seed, TYPES[kind])
    model, shape = Model("qdq", kind, OPSETS[seed % 4]), (1, 150, draw.integer(1, 20), draw.integer(1, 20))
    x = model.quantise("x", draw.scale(), draw.zero())
    axes = np.array([2, 3])
    y = model.node("ReduceMean", model.real(x), axes) if model.opset > 17 else \
        model.node("ReduceMean", model.real(x), axes=axes)
    y = model.quantise(y, f32(draw.near(x.scale) / f32(4)), draw.zero())
    values = draw.values(*shape) // 4 + np.linspace(0, 100, 150).reshape(1, -1, 1, 1)
    return Case(f"{name}, seed {seed}", kind, model.finish(y, shape, True),
                as_image(saturate(values, draw.dtype), x.scale, x.zero), ([],), FLOAT_OPERATORS,
                WITHIN_A_QUANTUM["ReduceMean"][0])


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
                yield gemm_case(form, kind, "gemm floats", seed, f32((1, 0.7)[seed % 2]))
                yield rows_case(kind, seed)
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
    if shape_name == "gemm floats":
        to = None
    attrs = {} if columns else {"transB": 1}
    if alpha != 1:
        attrs["alpha"] = float(alpha)
    y = model.gemm(x, w, bias, to, **attrs)
    image = as_image(draw.values(*shape), x_scale, x_zero)
    return Case(f"{name}, seed {seed}", kind, model.finish(y, shape, draw.integer(0, 1)), image, ([],))


def rows_case(kind, seed):
    """QLinearMatMul of the pixels of a map, with its channels last or as they are."""
    name = f"qoperator {kind} QLinearMatMul"
    draw = Draw(name, seed, TYPES[kind])
    shape, model = (1, draw.integer(3, 40), draw.integer(2, 9), draw.integer(2, 9)), Model("qoperator", kind, 17)
    x = model.quantise("x", draw.scale(), draw.zero())
    if seed % 2:
        x = model.keep("Transpose", x, perm=[0, 2, 3, 1])
    w = draw.weight((shape[1 if seed % 2 else 3], draw.integer(1, 60)), TYPES[draw.choice(["u8", "s8"])]
                    if kind == "u8" else np.int8, False)
    to = draw.target(x, w, w[0].shape[0])
    y = Map(model.node("QLinearMatMul", *x, *w, *to), *to)
    return Case(f"{name}, seed {seed}", kind, model.finish(y, shape, draw.integer(0, 1)),
                as_image(draw.values(*shape), x.scale, x.zero))


def dynamic_cases(seed):
    """DynamicQuantizeLinear with its three outputs, and what quantize_dynamic writes behind it."""
    for kind in TYPES:  # of the weights
        for ending in ("pairs", "positive", "negative", "zeros", "quarters"):
            yield dynamic_case(f"dynamic {ending}", kind, seed, None)
        for shape_name in CONVS:
            yield dynamic_case(f"dynamic {kind} conv {shape_name}", kind, seed, shape_name)
        for shape_name in ("rows", "channels last", "flat"):
            yield dynamic_case(f"dynamic {kind} matmul {shape_name}", kind, seed, "")
        for operator in ("ConvInteger", "MatMulInteger"):
            yield integer_case(operator, kind, seed)


def dynamic_image(name, draw, shape):
    image = (draw.random.standard_normal(shape) * 10.0 ** draw.integer(-4, 4)).astype(f32)
    if "positive" in name or "negative" in name:
        image = np.abs(image) * f32(1 if "positive" in name else -1)
    if "quarters" in name or draw.simple:  # half-way values are frequent
        image = (draw.random.integers(-510, 511, shape) * 0.25).astype(f32)
        image[0, 0, 0, :2] = draw.random.permutation([-127.5, 127.5])
    return np.zeros(shape, f32) if "zeros" in name else image


def dynamic_case(name, kind, seed, shape_name):
    draw, model, plans = Draw(name, seed, TYPES[kind]), Model("", kind, OPSETS[seed % 4]), DYNAMIC_PLANS
    shape = (1, draw.integer(3, 40), draw.integer(9, 20), draw.integer(9, 20))
    per_channel = bool(draw.integer(0, 1))
    if shape_name is None:
        y, scale, zero = model.node("DynamicQuantizeLinear", "x", outputs=3)
        model.output(y, TensorProto.UINT8)
        model.output(scale, TensorProto.FLOAT)
        model.output(zero, TensorProto.UINT8)
    elif shape_name:
        group, ic, oc, kernel, attrs = CONVS[shape_name]
        shape = (1, ic, *shape[2:])
        values, scales, zeros = draw.weight((oc, ic // group, *kernel), TYPES[kind], per_channel)
        bias = draw.random.standard_normal((oc, 1, 1)).astype(f32) if draw.integer(0, 1) else None
        y = model.dynamic("ConvInteger", "x", (values, scales, zeros.reshape(-1)[0]), bias,
                          **({"group": group} if group > 1 else {}), **attrs)
        y = model.dynamic("ConvInteger", model.node("Relu", y), draw.weight((5, oc, 1, 1), TYPES[kind], False), None)
        model.output(y, TensorProto.FLOAT)
    else:
        x, rows = "x", shape[3]
        if name.endswith("last"):
            x, rows = model.node("Transpose", "x", perm=[0, 2, 3, 1]), shape[1]
        elif name.endswith("flat"):
            x, rows = model.node("Flatten", "x"), shape[1] * shape[2] * shape[3]
        w = draw.weight((rows, draw.integer(1, 60)), TYPES[kind], per_channel, 1)
        bias = draw.random.standard_normal(w[0].shape[1]).astype(f32) if draw.integer(0, 1) else None
        model.output(model.dynamic("MatMulInteger", x, w, bias), TensorProto.FLOAT)
    return Case(f"{name}, seed {seed}", "u8", model.model(shape), dynamic_image(name, draw, shape), plans,
                FLOAT_OPERATORS)


def integer_case(operator, kind, seed):
    """ConvInteger and MatMulInteger of a map of constant scale, with and without zero points."""
    name = f"{operator} {kind}"
    draw, model = Draw(name, seed, np.uint8), Model("", "u8", OPSETS[seed % 4])
    shape = (1, draw.integer(3, 20), draw.integer(9, 20), draw.integer(9, 20))
    x = model.quantise("x", draw.scale(), draw.zero() if seed % 2 else np.uint8(0))
    attrs, filters = {}, (draw.integer(2, 20), shape[1], 3, 3)
    if operator == "MatMulInteger":
        filters = (shape[3], draw.integer(1, 60))
    else:
        attrs = {"pads": [1] * 4, "strides": [draw.integer(1, 2)] * 2}
    values, _, zero = draw.weight(filters, TYPES[kind], False)
    zeros = [x.zero, zero] if seed % 2 else []
    y = model.node("Cast", model.node(operator, x.name, values, *zeros, **attrs), to=TensorProto.FLOAT)
    model.output(y, TensorProto.FLOAT)
    return Case(f"{name}, seed {seed}", "u8", model.model(shape),
                as_image(draw.values(*shape), x.scale, x.zero), floats=FLOAT_OPERATORS)


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
    for build in (mobile_map, residual_map):
        for kind in TYPES:
            net, name = Network(seed), f"network {build.__name__} dynamic {kind}, seed {seed}"
            net.save(build(net), folder / "float.onnx", shape)
            quantization.quantize_dynamic(folder / "float.onnx", folder / "bytes.onnx", weight_type=(
                quantization.QuantType.QUInt8 if kind == "u8" else quantization.QuantType.QInt8))
            yield Case(name, "u8", onnx.load(folder / "bytes.onnx"),
                       np.random.default_rng([seed, *name.encode()]).standard_normal(shape).astype(f32),
                       DYNAMIC_PLANS, FLOAT_OPERATORS)
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


def difference(ours, theirs, share=0):
    """Words, or None where all bits are the same, or so many of the bytes differ by 1."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {ours.shape} instead of {theirs.dtype} {theirs.shape}"
    if np.array_equal(ours, theirs):
        return None
    wrong = ours != theirs
    if np.mean(wrong) <= share and np.max(np.abs(ours.astype(np.int64) - theirs.astype(np.int64))) == 1:
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} differ, first {list(at)}: {ours[at]} instead of {theirs[at]}"


# The contract `spec`

# Not compared: networks, in which differences grow, and operators that are the same in both contracts.
ONE_CONTRACT = ("network", "dynamic", "ConvInteger", "MatMulInteger")


def as_standard(model):
    """The model with each operator of bytes as DequantizeLinear, the float operator, QuantizeLinear."""
    nodes, scales = [], {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}

    def node(operator, inputs, **attrs):
        nodes.append(helper.make_node(operator, inputs, [f"standard{len(nodes)}"], **attrs))
        return nodes[-1].output[0]

    def real(x, scale, zero, axis):
        return node("DequantizeLinear", [x, scale, zero] if zero else [x, scale],
                    **({"axis": axis} if scales[scale].size > 1 else {}))

    constants = list(model.graph.initializer)
    for old in model.graph.node:
        operator = "Gemm" if old.op_type == "QGemm" else old.op_type.removeprefix("QLinear")
        if operator == old.op_type:
            nodes.append(old)
            continue
        attrs = {a.name: helper.get_attribute_value(a) for a in old.attribute if a.name not in ("channels_last", "opset")}
        inputs, bias = list(old.input) + [""] * 9, ""
        first, to, count = (2, 0, (len(old.input) - 2) // 3) if operator == "Concat" else (
            0, 7 if operator == "Gemm" else 6 if operator in ("Conv", "MatMul", "Add", "Mul") else 3, None)
        count = count or (1 if to == 3 else 2)
        axis = {"Conv": 0, "Gemm": 1 - attrs.get("transB", 0)}.get(operator, 1)
        operands = [real(*inputs[first + 3 * i:first + 3 * i + 3], axis) for i in range(count)]
        if operator in ("Conv", "Gemm"):
            bias = inputs[8 if operator == "Conv" else 6]
        if bias:
            unit = (f32(attrs.get("alpha", 1)) * scales[inputs[1]]) * scales[inputs[4]]
            constants.append(numpy_helper.from_array(np.asarray(unit, f32), f"unit{len(nodes)}"))
            scales[constants[-1].name] = np.asarray(unit)
            operands.append(real(bias, constants[-1].name, "", 0))
        y = node(operator, operands, **attrs)
        if inputs[to]:
            y = node("QuantizeLinear", [y, *[name for name in inputs[to:to + 2] if name]])
        nodes[-1].output[0] = old.output[0]
    graph = helper.make_graph(nodes, "standard", model.graph.input, model.graph.output, constants)
    return helper.make_model(graph, ir_version=model.ir_version, opset_imports=model.opset_import)


def check_standard(program, folder, case):
    """What is wrong with rfexec's outputs with --int8 spec, or None. The sums of float32 have another order in ONNX
    Runtime: up to one value in seven may be another, by one step."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(as_standard(case.model).SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    try:
        _, ours = rfexec_cli.run(program, folder / "case.onnx", case.image, folder, ["--int8", "spec"])
    except (rfexec_cli.Refused, RuntimeError) as error:
        return str(error).rsplit("output.npy: ", maxsplit=1)[-1]
    for output, theirs in zip(case.model.graph.output, session.run(None, {"x": case.image})):
        y = ours[output.name]
        if y.dtype != theirs.dtype or y.shape != theirs.shape:
            return f"{y.dtype} {y.shape} instead of {theirs.dtype} {theirs.shape}"
        distance = np.abs(y.astype(np.float64) - theirs.astype(np.float64))
        largest = np.max(np.abs(theirs.astype(np.float64)))
        step = 1 if y.dtype != f32 else 0.04 * largest
        wrong = np.mean(distance > (0 if y.dtype != f32 else 1e-5 * largest))
        if np.max(distance) > step * (3 if "chain" in case.name else 1) or wrong > 0.15:
            return f"{wrong:.2%} of the values differ, by up to {np.max(distance):g}"
    return None


def check_dequantized(program, folder, case, expected):
    """What is wrong with the outputs of QuantizeLinear with --dequantize, or None."""
    constants = {c.name: numpy_helper.to_array(c) for c in case.model.graph.initializer}
    steps = {node.output[0]: [constants[name] for name in node.input[1:]] for node in case.model.graph.node
             if node.op_type == "QuantizeLinear" and constants[node.input[1]].size == 1}
    if not any(output.name in steps for output in case.model.graph.output):
        return None
    _, ours = rfexec_cli.run(program, folder / "case.onnx", case.image, folder, ["--dequantize"])
    for output, theirs in zip(case.model.graph.output, expected):
        if output.name in steps:
            theirs = Quantised(theirs, *(steps[output.name] + [np.uint8(0)])[:2]).real()
        text = difference(ours[output.name], theirs)
        if text is not None and not (case.share and ours[output.name].dtype == theirs.dtype):
            return text
    return None


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
        text = difference(ours[output.name], expected[k], case.share)
        if text is not None:
            if difference(formula[k], expected[k], case.share) is None:
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
        left -= set(case.floats)
        if left:
            return f"{case.name}: ONNX Runtime computes {', '.join(sorted(left))} in float32"
    if program == "-":
        texts = [difference(ours, theirs, case.share) for ours, theirs in zip(formula, expected)]
        return next((f"{case.name}: the formula: {text}" for text in texts if text is not None), None)
    onnx.save(case.model, folder / "case.onnx")
    np.save(folder / "input.npy", case.image)
    for plan in case.plans:
        text = check_plan(program, folder, case, plan, expected, formula)
        if text is not None:
            return f"{case.name}{' under ' if plan else ''}{' '.join(plan)}: {text}"
    text = None if case.name.startswith(ONE_CONTRACT) else check_standard(program, folder, case)
    if text is not None:
        return f"{case.name} with --int8 spec: {text}"
    text = check_dequantized(program, folder, case, expected)
    return None if text is None else f"{case.name} with --dequantize: {text}"


def all_cases(seeds, folder):
    for seed in range(seeds):
        yield from pair_cases(seed)
        yield from step_cases(seed)
        yield from conv_cases(seed)
        yield from binary_cases("Add", seed)
        yield from binary_cases("Mul", seed)
        yield from small_cases(seed)
        yield from head_cases(seed)
        yield from chain_cases(seed)
        yield from dynamic_cases(seed)
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
