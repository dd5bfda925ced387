"""Each 8-bit operator alone, in random cases, through rfexec and through ONNX Runtime's integer kernels: every byte.

    quantised_cases.py build/rfexec [--cases 1000] [--seed 1] [--only TEXT]     RFX_CASES sets the number too
    quantised_cases.py build/rfexec --only "qdq Conv dense" --case 17           one case again

Each operator is tried in so many cases: in the QOperator form (QLinearConv and its kin), and in the QDQ form, a float
operator between DequantizeLinear and QuantizeLinear. A case draws the shape (odd sizes, single rows and channels), the
scales (over twelve decades), the zero points (half of them at the ends of the type), uint8 or int8, scales per channel
or one, the type of the weights, the bias, and the operator's attributes. Half of the cases have scales in simple
ratios, so that many values lie half-way between two integers.

The library runs in this process. The session options of ONNX Runtime, and what it computes in float32, are those of
quantised_models.py. An operator of INTEGER must not be left in float32 there, so that a mistake of this script cannot
compare floats. SHARES names the operators that are not compared byte by byte, and how many bytes may differ by 1.
Needs x86-64: on other processors ONNX Runtime has other integer kernels (exit code 77).
"""

import argparse
import itertools
import os
import pathlib
import platform
import sys
import tempfile
import time
import typing

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException

import quantised_models as models
from quantised_models import Map, Model, TYPES, as_image, f32
from rfexec_library import Failed, Library

MOST_PRINTED = 3  # failed cases of an operator
MOST_ELEMENTS = 6000  # of a map
LEAST_OPSET = {"Gelu": 20, "HardSwish": 14}
SHARES = {
    "qdq ConvTranspose overlapping": (0.05, "ONNX Runtime adds the taps of a pixel in another order"),
    "qdq Softmax": (0.5, "ONNX Runtime divides by floor(1 / scale); rfexec computes it in float32"),
}


class Draw(models.Draw):
    """Random values of one case."""

    def __init__(self, name, seed, index):
        self.random = np.random.default_rng([seed, index, *name.encode()])
        self.kind = self.choice(list(TYPES))
        self.dtype = TYPES[self.kind]
        self.ends, self.simple = np.iinfo(self.dtype), index % 2 == 0
        self.opset = self.choice(models.OPSETS)

    def zero(self):
        """A zero point: in half of the cases an end of the type."""
        return self.dtype(self.choice([self.ends.min, self.ends.max, self.integer(self.ends.min, self.ends.max),
                                       self.integer(self.ends.min, self.ends.max)]))

    def scale(self):
        """A scale, of any decade from 1e-7 to 1e5."""
        power = 10.0 ** self.integer(-7, 4)
        return f32(power * (self.integer(1, 99) / 10 if self.simple else self.random.uniform(1, 10)))

    def near(self, scale):
        """A scale in the decade of another one; sometimes much smaller or larger."""
        return f32(float(super().near(scale)) * self.choice([1] * 8 + [0.01, 100]))

    def shape(self, most_channels=70):
        """1 x channels x rows x columns."""
        channels = self.choice([1, 2, 3, 4, 8, 16, 32, self.integer(1, most_channels), self.integer(1, most_channels)])
        rows, columns = [self.choice([1, 2, 3, self.integer(1, 24), self.integer(1, 24)]) for _ in range(2)]
        while channels * rows * columns > MOST_ELEMENTS:
            rows, columns = (rows + 1) // 2, (columns + 1) // 2
        return (1, min(channels, most_channels), rows, columns)

    def weight(self, shape, dtype, per_channel, axis=0):
        """Values, scales and zero points of weights."""
        scale, count, ends = self.scale(), shape[axis], np.iinfo(dtype)
        zero = dtype(0) if dtype == np.int8 and self.integer(0, 1) else dtype(self.choice(
            [ends.min, ends.max, self.integer(ends.min, ends.max)]))
        values = self.values(*shape, dtype=dtype, extremes=self.integer(0, 9) == 0)
        if not per_channel:
            return values, scale, zero
        parts = [1, 0.5, 0.3, 1 / 3, 0.7, 0.01]
        return values, np.array([scale * f32(self.choice(parts)) for _ in range(count)], f32), np.full(count, zero)

    def model(self, form, operator=""):
        return Model(form, self.kind, max(self.opset, LEAST_OPSET.get(operator, 0)))


class Case(typing.NamedTuple):
    """A model and its image."""
    kind: str
    model: onnx.ModelProto
    image: np.ndarray


def finish(draw, model, y, shape, x, values=None):
    """The case of a model that ends with the map y; x: (scale, zero point) of the image."""
    values = draw.values(*shape, extremes=draw.integer(0, 9) == 0) if values is None else values
    return Case(draw.kind, model.finish(y, shape, draw.integer(0, 3) > 0), as_image(values, *x))


def quantise_case(draw, form, _):
    """QuantizeLinear of numbers near and far, infinities, and exact halves."""
    model, scale, shape = draw.model(form), draw.scale(), draw.shape()
    image = draw.random.choice([0.5, 1, 3, 1000], shape) * draw.random.uniform(-300, 300, shape)
    halves = draw.random.integers(-600, 600, shape) / 2
    image = np.where(draw.random.integers(0, 2, shape), halves, image).astype(f32) * scale
    special = np.array([np.inf, -np.inf, 3e38, -3e38, -0.0, 1e-45], f32)
    image = np.where(draw.random.integers(0, 20, shape) == 0, draw.random.choice(special, shape), image)
    y = model.quantise("x", scale, None if draw.kind == "u8" and draw.integer(0, 4) == 0 else draw.zero())
    model.output(y.name, helper.np_dtype_to_tensor_dtype(np.dtype(draw.dtype)))
    return Case(draw.kind, model.model(shape), image.astype(f32))


def dequantise_case(draw, form, _):
    model, shape, x = draw.model(form), draw.shape(), (draw.scale(), draw.zero())
    bytes_of_x = model.quantise("x", *x)
    again = Map(bytes_of_x.name, draw.scale(), draw.zero())
    model.output(model.real(again), onnx.TensorProto.FLOAT)
    return Case(draw.kind, model.model(shape), as_image(draw.values(*shape), *x))


def window(draw, word, rows, columns):
    """Kernel size, strides, dilations and pads of a window that fits into a map."""
    kernel = [draw.choice([1, 3, draw.integer(1, 5)]) for _ in range(2)]
    attrs = {"strides": [1, 1], "dilations": [1, 1]}
    if word == "strided":
        attrs["strides"] = [draw.integer(1, 3), draw.integer(1, 3)]
    if word == "dilated":
        kernel = [draw.integer(2, 4) for _ in range(2)]
        attrs["dilations"] = [draw.integer(1, 3), draw.integer(1, 3)]
    pads = [draw.integer(0, k * d - d) for k, d in zip(kernel * 2, attrs["dilations"] * 2)]
    for axis, length in ((0, rows), (1, columns)):  # a map that is too small is padded
        reach = (kernel[axis] - 1) * attrs["dilations"][axis] + 1
        pads[axis] += max(0, reach - length - pads[axis] - pads[axis + 2])
    return kernel, {**attrs, "pads": pads}


def conv_case(draw, form, word):
    shape = draw.shape(24 if word != "depthwise" else 70)
    kernel, attrs = window(draw, word, *shape[2:])
    ic, oc, group = shape[1], draw.integer(1, 40), 1
    if word == "grouped":
        group = draw.integer(2, 4)
        shape = (1, group * max(1, ic // group), *shape[2:])
        ic, oc = shape[1], group * draw.integer(1, 9)
    elif word == "depthwise":
        group, oc = ic, ic * draw.choice([1, 1, 1, 2])
    model, x = draw.model(form), (draw.scale(), draw.zero())
    per_channel = draw.integer(0, 1)
    w = draw.weight((oc, ic // group, *kernel), TYPES[draw.choice(["s8", "s8", "u8"] if draw.kind == "u8" else ["s8"])],
                    per_channel)
    image = model.quantise("x", *x)
    to = output_of(draw, image, w, ic // group * kernel[0] * kernel[1])
    bias = bias_of(draw, form, image, w, to, oc)
    y = model.conv(image, w, bias, to, **({"group": group} if group > 1 else {}), **attrs)
    return finish(draw, model, y, shape, x)


def output_of(draw, x, w, terms):
    """Scale and zero point of sums of so many products: some values saturate, in some cases most."""
    if draw.simple and draw.integer(0, 1):
        few = draw.random.integers(-2, 3, w[0].shape) + int(np.max(w[2]))
        w[0][...] = models.saturate(few, w[0].dtype)
        terms = max(1, terms // 400)
    scale, zero = draw.target(x, w, terms)
    return f32(scale * f32(draw.choice([1, 1, 1, 0.1, 10]))), zero


def bias_of(draw, form, x, w, to, count):
    """int32, absent, or in QDQ form float."""
    kind = draw.choice(["int32", "int32", None] + (["float"] if form == "qdq" else []))
    value = draw.bias(count, float(to[0]) / (float(x.scale) * float(np.mean(w[1]))))
    return {None: None, "int32": value, "float": value.astype(f32) * (x.scale * w[1])}[kind]


def row_case(draw, form, word):
    """Gemm and MatMul of one row; with "Gemm" the weights may lie either way."""
    model, x, terms, count = draw.model(form), (draw.scale(), draw.zero()), draw.integer(1, 300), draw.integer(1, 70)
    columns, alpha = word == "MatMul" or draw.integer(0, 1), f32(1)
    w = draw.weight((terms, count) if columns else (count, terms),
                    TYPES[draw.choice(["s8", "s8", "u8"] if draw.kind == "u8" else ["s8"])], draw.integer(0, 1),
                    1 if columns else 0)
    image = model.quantise("x", *x)
    row = model.keep("Flatten", image) if draw.integer(0, 1) else model.keep("Reshape", image, np.array([1, terms]))
    to = output_of(draw, image, w, terms)
    if word == "MatMul" and draw.kind == "u8" and w[0].dtype == np.int8:
        w[0][...] = np.clip(w[0], -64, 63)  # x64quantprecision leaves QLinearMatMul as it is, and its pairs saturate
    if word == "Gemm":
        attrs = {} if columns else {"transB": 1}
        if form == "qoperator" and draw.integer(0, 2) == 0:
            alpha = f32(draw.random.uniform(0.1, 3))
            attrs["alpha"] = float(alpha)
        bias = bias_of(draw, "qoperator", image, w, to, count)  # a bias of floats is for Conv only
        y = model.gemm(row, w, bias, to, **attrs)
    elif form == "qoperator":
        y = Map(model.node("QLinearMatMul", *row, *w, *to), *to)
        model.nodes[-1].domain = ""
    else:
        axis = {"axis": 1} if w[1].size > 1 else {}
        y = model.quantise(model.node("MatMul", model.real(row), model.node("DequantizeLinear", *w, **axis)), *to)
    shape = (1, terms, 1, 1) if draw.integer(0, 1) else (1, 1, 1, terms)
    return finish(draw, model, y, shape, x)


def pair_case(draw, form, word):
    """Add and Mul of two maps, or of a map and one of its parts or a constant, in either order."""
    model, shape, a = draw.model(form), draw.shape(), (draw.scale(), draw.zero())
    other = draw.choice(["map", "map", "itself", "constant", "per channel", "one element"])
    if word == "Mul":
        b = (f32(draw.choice([1 / 255, 1 / 128, 0.01, 1 / 3])) if draw.simple else draw.scale(), draw.zero())
        step = draw.choice([2, 4, 10, 12, 50, 100]) if draw.simple else draw.random.uniform(2, 100)
        to = (f32(float(a[0]) * float(a[0] if other == "itself" else b[0]) * step), draw.zero())
    else:
        b, to = (draw.near(a[0]), draw.zero()), (draw.near(a[0]), draw.zero())
    image = as_image(draw.values(*shape), *a)
    if other == "map":
        image = np.concatenate([image, as_image(draw.values(*shape), *b)], 1)
        parts = model.node("Split", "x", np.array([shape[1]] * 2), outputs=2, axis=1)
        maps = [model.quantise(part, *how) for part, how in zip(parts, (a, b))]
    else:
        first = model.quantise("x", *a)
        size = {"per channel": (1, shape[1], 1, 1), "one element": (1, 1, 1, 1)}.get(other, shape)
        maps = [first, first if other == "itself" else Map(model.constant(draw.values(*size)), *b)]
    if draw.integer(0, 1):
        maps.reverse()
    y = model.apply(word, maps, to)
    return Case(draw.kind, model.finish(y, image.shape, draw.integer(0, 3) > 0), image)


def concat_case(draw, form, _):
    model, shape, count = draw.model(form), draw.shape(20), draw.integer(2, 5)
    scale, to = draw.scale(), None
    to = (draw.near(scale), draw.zero())
    how = [to if draw.integer(0, 3) == 0 else (draw.near(scale), draw.zero()) for _ in range(count)]
    channels = [draw.integer(1, shape[1]) for _ in range(count)]
    image = np.concatenate([as_image(draw.values(1, c, *shape[2:]), *step) for c, step in zip(channels, how)], 1)
    parts = model.node("Split", "x", np.array(channels), outputs=count, axis=1)
    y = model.apply("Concat", [model.quantise(part, *step) for part, step in zip(parts, how)], to, axis=1)
    return Case(draw.kind, model.finish(y, image.shape, draw.integer(0, 3) > 0), image)


def pool_case(draw, form, word):
    """AveragePool changes the scale, MaxPool keeps it."""
    model, shape, x = draw.model(form), draw.shape(), (draw.scale(), draw.zero())
    kernel, attrs = window(draw, "strided", *shape[2:])
    del attrs["dilations"]
    if max(p - k for p, k in zip(attrs["pads"], kernel * 2)) >= 0:  # of a small map: not more pads than the kernel
        kernel, attrs["pads"] = [1, 1], [0] * 4
    attrs["kernel_shape"] = kernel
    image = model.quantise("x", *x)
    if word == "MaxPool":
        return finish(draw, model, model.keep(word, image, **attrs), shape, x)
    if draw.integer(0, 1):
        attrs["count_include_pad"] = 1
    step = 2 * draw.integer(1, 6) if draw.simple else draw.random.uniform(1, 12)
    to = (f32(float(x[0]) * step / np.prod(kernel)), draw.zero()) if draw.integer(0, 1) else \
        (draw.near(x[0]), draw.zero())
    return finish(draw, model, model.apply(word, (image,), to, **attrs), shape, x)


def mean_case(draw, form, word):
    model, shape, x = draw.model(form), draw.shape(), (draw.scale(), draw.zero())
    step = 2 * draw.integer(1, 6) if draw.simple else draw.random.uniform(1, 12)
    to = (f32(float(x[0]) * step / (shape[2] * shape[3])), draw.zero()) if draw.integer(0, 1) else \
        (draw.near(x[0]), draw.zero())
    return finish(draw, model, model.apply(word, (model.quantise("x", *x),), to), shape, x)


def function_case(draw, form, word):
    """Functions of one element, and Softmax."""
    model, shape, x = draw.model(form, word), draw.shape(), (draw.scale(), draw.zero())
    if word in ("Sigmoid", "HardSigmoid", "Softmax", "HardSwish"):
        x = (f32(10.0 ** draw.random.uniform(-4, 0)), x[1])
    to, more, attrs = (draw.near(x[0]), draw.zero()), [], {}
    if word in ("Sigmoid", "HardSigmoid"):
        to = (f32(draw.choice([1 / 256, 1 / 255, 0.004, 0.01]) if draw.simple else draw.random.uniform(0.002, 0.1)),
              draw.zero())
    elif word == "Softmax":
        attrs["axis"] = draw.choice([1, 3])
        to = (f32(draw.choice([1 / 256, 1 / 255, 0.004]) if draw.simple else draw.random.uniform(0.004, 0.02)),
              draw.dtype(draw.ends.min))
        shape = (1, max(4, shape[1]), shape[2], max(4, shape[3]))
    elif word == "LeakyRelu":
        attrs["alpha"] = draw.choice([0.1, 0.01, 0.25, draw.random.uniform(0, 2)])
    elif word == "Clip":
        ends = np.sort(draw.random.integers(-300, 300, 2) * float(x[0])).astype(f32)
        more = [end if draw.integer(0, 4) else "" for end in ends]
    elif word == "HardSigmoid" and draw.integer(0, 1):
        attrs = {"alpha": draw.random.uniform(0.01, 1), "beta": draw.random.uniform(-0.5, 1)}
    while more and isinstance(more[-1], str):
        more.pop()
    return finish(draw, model, model.apply(word, (model.quantise("x", *x),), to, *more, **attrs), shape, x)


def norm_case(draw, form, word):
    """BatchNormalization, between the conversions."""
    model, shape, x = draw.model(form), draw.shape(), (draw.scale(), draw.zero())
    to = (draw.near(x[0]), draw.zero())
    y = model.apply(word, (model.quantise("x", *x),), to, *models.norm(draw, shape[1], x[0], to[0]),
                    epsilon=draw.choice([1e-5, 1e-3]))
    return finish(draw, model, y, shape, x)


def move_case(draw, form, word):
    """Operators that move bytes; in QDQ form also to another scale."""
    model, shape, x = draw.model(form), draw.shape(), (draw.scale(), draw.zero())
    image, more, attrs = model.quantise("x", *x), [], {}
    if word == "Resize":
        attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        more = ["", np.array([1, 1, draw.integer(1, 4), draw.integer(1, 4)], f32)]
    elif word == "Pad":
        attrs["mode"] = draw.choice(["constant", "reflect", "edge"])
        most = [min(3, n - 1) if attrs["mode"] == "reflect" else 3 for n in shape]
        pads = [0, 0, draw.integer(0, most[2]), draw.integer(0, most[3])] * 2
        more = [np.array(pads)] + ([f32(draw.integer(-20, 20) * x[0])] if attrs["mode"] == "constant" else [])
    elif word == "Slice":
        axes = [axis for axis in (1, 2, 3) if draw.integer(0, 1)] or [2]
        starts = [draw.integer(0, shape[axis] - 1) for axis in axes]
        more = [np.array(starts), np.array([draw.integer(start + 1, shape[axis]) for start, axis in zip(starts, axes)]),
                np.array(axes), np.array([draw.integer(1, 3) for _ in axes])]
    elif word == "Reshape":
        more = [np.array(draw.choice([[1, -1], [1, -1, 1, 1], [1, shape[1], -1], [1, 1, -1, shape[3]]]))]
    elif word == "Transpose":
        attrs["perm"] = draw.choice([[0, 2, 3, 1], [0, 1, 3, 2], [0, 3, 2, 1], [0, 3, 1, 2]])
    if word == "Split":
        shape = (1, max(2, shape[1]), *shape[2:])
        first = draw.integer(1, shape[1] - 1)
        name = image.name if form == "qoperator" else model.real(image)
        names = model.node(word, name, np.array([first, shape[1] - first]), outputs=2, axis=1)
        other = (draw.near(x[0]), draw.zero())
        maps = [Map(part, *x) if form == "qoperator" else model.quantise(part, *draw.choice([x, other]))
                for part in names]
        model.output(maps[0].name, helper.np_dtype_to_tensor_dtype(np.dtype(draw.dtype)))
        return finish(draw, model, maps[1], shape, x)
    constant_pad = word == "Pad" and attrs["mode"] == "constant"
    if form == "qoperator" or (draw.integer(0, 1) and not constant_pad):
        y = model.keep(word, image, *(more[:1] + [draw.zero()] if constant_pad else more), **attrs)
    else:
        y = model.apply(word, (image,), (draw.near(x[0]), draw.zero()), *more, **attrs)
    return finish(draw, model, y, shape, x)


def transposed_case(draw, form, word):
    """ConvTranspose, between the conversions: ONNX Runtime computes it in float32. Unless kernels overlap, the order of
    its sums is rfexec's."""
    model, shape, x = draw.model(form), draw.shape(40), (draw.scale(), draw.zero())
    kernel, stride = draw.choice([(3, 2), (4, 2), (3, 1), (5, 3)] if word else [(2, 2), (3, 3), (1, 1), (2, 3)])
    image = model.quantise("x", *x)
    w = draw.weight((shape[1], draw.integer(1, 12), kernel, kernel), np.int8, draw.integer(0, 1), 1)
    to = draw.target(image, w, shape[1] * kernel * kernel / stride / stride)
    bias = draw.bias(w[0].shape[1], float(to[0]) / float(image.scale) / float(np.max(w[1])))
    axis = {"axis": 1} if w[1].size > 1 else {}
    y = model.node("ConvTranspose", model.real(image), model.node("DequantizeLinear", *w, **axis),
                   model.node("DequantizeLinear", bias, image.scale * w[1], **({"axis": 0} if axis else {})),
                   strides=[stride] * 2, pads=[max(kernel - stride, 0) // 2] * 4)
    return finish(draw, model, model.quantise(y, *to), shape, x)


CONVS = ("dense", "grouped", "depthwise", "dilated", "strided")
# name: (function, form, operator or kind of window)
CASES = {
    "QuantizeLinear": (quantise_case, "qdq", ""), "DequantizeLinear": (dequantise_case, "qdq", ""),
    **{f"{form} Conv {word}": (conv_case, form, word) for form in models.FORMS for word in CONVS},
    **{f"{form} {word}": (row_case, form, word) for form in models.FORMS for word in ("Gemm", "MatMul")},
    **{f"{form} {word}": (pair_case, form, word) for form in models.FORMS for word in ("Add", "Mul")},
    **{f"{form} Concat": (concat_case, form, "Concat") for form in models.FORMS},
    **{f"{form} {word}": (pool_case, form, word) for form in models.FORMS for word in ("AveragePool", "MaxPool")},
    **{f"{form} GlobalAveragePool": (mean_case, form, "GlobalAveragePool") for form in models.FORMS},
    **{f"{form} {word}": (function_case, form, word) for form in models.FORMS for word in ("Sigmoid", "LeakyRelu")},
    **{f"qdq {word}": (function_case, "qdq", word)
       for word in ("Relu", "Clip", "HardSigmoid", "HardSwish", "Softmax")},
    **{f"{form} {word}": (move_case, form, word) for form in models.FORMS
       for word in ("Resize", "Pad", "Slice", "Reshape", "Transpose", "Split")},
    "qdq BatchNormalization": (norm_case, "qdq", "BatchNormalization"),
    "qdq ConvTranspose": (transposed_case, "qdq", ""),
    "qdq ConvTranspose overlapping": (transposed_case, "qdq", "overlapping"),
}
# What ONNX Runtime must not compute in float32, by the last words of the name.
INTEGER = ("Conv", "Gemm", "MatMul", "Add", "Mul", "Concat", "AveragePool", "GlobalAveragePool", "Sigmoid", "LeakyRelu")


def make_case(name, seed, index):
    function, *words = CASES[name]
    return function(Draw(name, seed, index), *words)


def expected_of(case, folder):
    """Outputs of ONNX Runtime, and the float operators that it ran."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.add_session_config_entry(
        "session.x64quantprecision" if case.kind == "u8" else "session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    left = {node.op_type for node in onnx.load(folder / "optimised.onnx").graph.node} & models.FLOAT_OPERATORS
    return session.run(None, {"x": case.image}), left


def as_read(case):
    """The image as the library takes it: channels first, also if a Transpose behind it says that they come last."""
    last = any(node.op_type == "Transpose" and list(node.attribute[0].ints) == [0, 3, 1, 2]
               for node in case.model.graph.node)
    return np.ascontiguousarray(case.image.transpose(0, 3, 1, 2)) if last else case.image


class Count:
    """Cases and bytes of one operator."""

    def __init__(self):
        self.cases = self.bytes = self.by_one = self.failed = 0

    def compare(self, ours, theirs, share):
        """What is wrong with an output, or None."""
        self.bytes += theirs.nbytes
        if share and ours.dtype == theirs.dtype and ours.dtype != f32:
            self.by_one += int(np.count_nonzero(ours != theirs))
        return None if share and ours.dtype == f32 else models.difference(ours, theirs, share)


def check(library, folder, name, case, count):
    """What is wrong with a case, or None."""
    try:
        expected, left = expected_of(case, folder)
    except RuntimeException as error:
        if "out of computation range" in str(error):
            return None  # a mean of which one step is above 256 steps of the output, or below 2^-32
        raise
    if left and name.split()[1 if " " in name else 0] in INTEGER:
        return f"ONNX Runtime computes {', '.join(sorted(left))} in float32"
    try:
        ours = library.run(case.model.SerializeToString(), as_read(case))
    except Failed as failed:
        return str(failed)
    count.cases += 1
    share = SHARES.get(name, (0,))[0]
    texts = [count.compare(ours[output.name], theirs, share)
             for output, theirs in zip(case.model.graph.output, expected)]
    return next((text for text in texts if text is not None), None)


def check_operator(library, folder, name, options):
    count, start = Count(), time.monotonic()
    for index in [options.case] if options.case is not None else itertools.count():
        if count.cases == options.cases:
            break
        case = make_case(name, options.seed, index)
        text = check(library, folder, name, case, count)
        if text is not None:
            count.failed += 1
            if count.failed <= MOST_PRINTED:
                print(f"{name} --seed {options.seed} --case {index}, {case.kind} {case.image.shape}: {text}",
                      flush=True)
        if options.save:
            onnx.save(case.model, options.save + ".onnx")
            np.save(options.save + ".npy", case.image)
    near = f", {count.by_one} differ by 1 ({SHARES[name][1]})" if name in SHARES else ""
    print(f"{name}: {count.cases} cases, {count.bytes} bytes, {count.failed} cases failed{near}, "
          f"{time.monotonic() - start:.0f} s", flush=True)
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=int(os.environ.get("RFX_CASES", "1000")), help="of each operator")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this case")
    parser.add_argument("--only", default="", help="only operators whose names contain this text")
    parser.add_argument("--save", help="write the last model and its image as SAVE.onnx and SAVE.npy")
    options = parser.parse_args()
    if platform.machine() not in ("x86_64", "AMD64"):
        print("NOT compared: the integer kernels of ONNX Runtime are others on this processor")
        return 77
    library = Library(options.program)
    with tempfile.TemporaryDirectory() as work:
        counts = [check_operator(library, pathlib.Path(work), name, options)
                  for name in CASES if options.only in name]
    cases, failed = sum(count.cases for count in counts), sum(count.failed for count in counts)
    print(f"quantised operators: {len(counts)} operators, {cases} random cases of "
          f"{sum(count.bytes for count in counts)} bytes, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
