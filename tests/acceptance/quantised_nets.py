#!/usr/bin/env python3
"""Writes the small 8-bit networks of data/: quantised_u8.onnx and quantised_s8.onnx, without any library.

    quantised_nets.py FOLDER [--corpus CORPUS]     also with a quarter of the channels, for tests/fuzz/corpus/model

Their weights come from a seed. quantised_u8 has float operators between DequantizeLinear and QuantizeLinear and uint8
maps; quantised_s8 has QLinear operators and int8 maps. Both take images of any size from 17x17 pixels on, multiples of
4 or not. No scale is trained: they are such that the maps use most of their 256 values.
"""

import argparse
import math
import pathlib
import random
import struct

from onnx_bytes import FLOAT, INT64, constant, field, node, open_value

UINT8, INT8, INT32 = 2, 3, 6


class Network:
    """Nodes and constants of a network whose maps have one type of one byte. A map is (name, scale, zero, channels)."""

    def __init__(self, kind, seed):
        self.kind, self.random = kind, random.Random(seed)
        self.lowest = 0 if kind == UINT8 else -128
        self.nodes, self.constants = [], []

    def number(self, data, kind, *dims):
        name = f"c{len(self.constants)}"
        self.constants.append(constant(name, kind, dims, data))
        return name

    def floats(self, *values, scalar=True):
        return self.number(struct.pack(f"<{len(values)}f", *values), FLOAT, *([] if scalar else [len(values)]))

    def ints(self, *values):
        return self.number(struct.pack(f"<{len(values)}q", *values), INT64, len(values))

    def byte(self, value, kind):
        return self.number(struct.pack("<B" if kind == UINT8 else "<b", value), kind)

    def op(self, op, *inputs, domain="", outputs=1, **attributes):
        names = [f"{op.lower()}_{len(self.nodes)}" + (f"_{k}" if outputs > 1 else "") for k in range(outputs)]
        self.nodes.append(node(op, inputs, names, **attributes) + (field(7, domain.encode()) if domain else b""))
        return names[0] if outputs == 1 else names

    def step(self, x):
        """The inputs scale and zero point of a map."""
        return self.floats(x[1]), self.byte(x[2], self.kind)

    def quantise(self, name, scale, zero, channels):
        return self.op("QuantizeLinear", name, self.floats(scale), self.byte(zero, self.kind)), scale, zero, channels

    def real(self, x):
        return self.op("DequantizeLinear", x[0], *self.step(x))

    def weights(self, count, terms, scale):
        """int8 values, one scale for each output channel, zero points of 0, and a bias of int32."""
        values = bytes(self.random.getrandbits(8) for _ in range(count * terms))
        scales = [scale * (0.5 + self.random.getrandbits(8) / 512) for _ in range(count)]
        spread = int(40 * 70 * math.sqrt(terms))
        bias = [self.random.getrandbits(20) % (2 * spread) - spread for _ in range(count)]
        return values, scales, bytes(count), bias

    def conv(self, x, oc, size, relu=False, groups=1, transposed=False, **attributes):
        """A convolution that adds about as much noise as it gets."""
        ic = x[3]
        values, scales, zeros, bias = self.weights(oc, ic // groups * size * size, 0.01)
        to = (x[1] * 0.01 * 70 * 70 * math.sqrt(ic // groups * size * size) / 110,
              self.lowest + (0 if relu else 120))
        dims = (ic, oc, size, size) if transposed else (oc, ic // groups, size, size)
        w = self.number(values, INT8, *dims), self.floats(*scales, scalar=False), self.number(zeros, INT8, oc)
        b = self.number(struct.pack(f"<{oc}i", *bias), INT32, oc)
        attributes["group"] = groups
        if self.kind == INT8 and not transposed:
            y = (None, *to, oc)
            name = self.op("QLinearConv", x[0], *self.step(x), *w, *self.step(y), b, **attributes)
            return (name, *to, oc)
        b_scale = self.floats(*[struct.unpack("<f", struct.pack("<f", x[1] * s))[0] for s in scales], scalar=False)
        b_zero = self.number(bytes(4 * oc), INT32, oc)
        name = self.op("ConvTranspose" if transposed else "Conv", self.real(x),
                       self.op("DequantizeLinear", *w, axis=1 if transposed else 0),
                       self.op("DequantizeLinear", b, b_scale, b_zero, axis=0), **attributes)
        if relu:
            name = self.op("Relu", name)
        return self.quantise(name, *to, oc)

    def apply(self, op, inputs, scale, zero=None, channels=None, more=(), **attributes):
        """An operator of maps, in the form of this network."""
        y = scale, self.lowest + 120 if zero is None else zero, inputs[0][3] if channels is None else channels
        if self.kind == INT8:
            maps = [word for x in inputs for word in (x[0], *self.step(x))]
            to = self.step((None, *y))
            words = [*to, *maps] if op == "Concat" else [*maps, *to]
            return (self.op(f"QLinear{op}", *words, domain="com.microsoft", **attributes), *y)
        return self.quantise(self.op(op, *[self.real(x) for x in inputs], *more, **attributes), *y)

    def write(self, path, outputs):
        graph = b"".join(field(1, n) for n in self.nodes) + field(2, path.stem.encode()) + \
            b"".join(field(5, c) for c in self.constants) + \
            field(11, open_value("image", FLOAT, 1, 3, "rows", "columns")) + \
            b"".join(field(12, open_value(name, kind, *dims)) for name, kind, *dims in outputs)
        domains = [("", 17), ("com.microsoft", 1)]
        path.write_bytes(field(1, 8) + field(2, b"quantised_nets.py") + field(7, graph) + b"".join(
            field(8, (field(1, domain.encode()) if domain else b"") + field(2, version))
            for domain, version in domains))


def residual(net, x):
    """An inverted residual block."""
    wide = net.conv(x, 2 * x[3], 1, True)
    wide = net.conv(wide, 2 * x[3], 3, True, 2 * x[3], pads=[1] * 4)
    narrow = net.conv(wide, x[3], 1)
    return net.apply("Add", [x, narrow], 0.8 * max(x[1], narrow[1]))


def gate(net, x):
    """The map times a function of its mean."""
    mean = net.apply("GlobalAveragePool", [x], x[1] * 0.6)
    inner = net.conv(mean, x[3], 1)
    inner = (*inner[:1], 0.03, *inner[2:])  # read in a scale in which a gate is neither open nor shut
    if net.kind == INT8:
        inner = net.apply("Sigmoid", [inner], 1 / 256, -128)
    else:
        inner = net.apply("HardSigmoid", [inner], 1 / 256, 0, alpha=0.2, beta=0.5)
    return net.apply("Mul", [x, inner], x[1] * 0.7)


def write_u8(path, width=4):
    net = Network(UINT8, 49)
    x = net.quantise("image", 0.02, 114, 3)
    x = net.conv(x, 3 * width, 3, True, strides=[2, 2], pads=[1] * 4)
    x = early = residual(net, x)
    x = net.quantise(net.op("MaxPool", net.real(x), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), *x[1:])
    x = net.conv(x, 4 * width, 3, True, pads=[2] * 4, dilations=[2, 2])
    smooth = net.apply("AveragePool", [x], x[1] * 0.6, kernel_shape=[3, 3], pads=[1] * 4)
    x = net.apply("Concat", [x, smooth], x[1], channels=8 * width, axis=1)
    x = gate(net, x)
    x = net.conv(x, 4 * width, 1)
    x = net.apply("HardSwish", [(*x[:1], 0.03, *x[2:])], 0.015, 30)
    small = net.op("Slice", net.real(early), net.ints(0, 0), net.ints(1 << 40, 1 << 40), net.ints(2, 3), net.ints(2, 2))
    other = net.conv(net.quantise(small, *early[1:]), 4 * width, 1)
    x = net.apply("Add", [x, (*other[:1], 0.015, *other[2:])], 0.02)
    logits = net.conv(x, 5, 1)
    logits = net.quantise(net.op("Resize", net.real(logits), "", net.floats(1, 1, 2, 2, scalar=False), mode="nearest",
                                 coordinate_transformation_mode="asymmetric", nearest_mode="floor"), *logits[1:])
    up = net.conv(x, 3, 2, transposed=True, strides=[2, 2])
    x = net.apply("Concat", [logits, up], max(logits[1], up[1]), channels=8, axis=1)
    net.write(path, [(net.real(x), FLOAT, 1, 8, "h", "w")])


def write_s8(path, width=4):
    net = Network(INT8, 94)
    x = net.quantise("image", 0.02, -10, 3)
    x = net.conv(x, 4 * width, 3, True, strides=[2, 2], pads=[1] * 4)
    x = residual(net, x)
    x = net.conv(x, 4 * width, 3, groups=4, pads=[1] * 4)
    x = net.apply("LeakyRelu", [x], x[1], -100, alpha=0.1)
    x = net.apply("AveragePool", [x], x[1] * 0.7, -100, kernel_shape=[2, 2], strides=[2, 2])
    other = net.conv(x, 2 * width, 5, pads=[2] * 4)
    x = net.apply("Concat", [x, (*other[:1], x[1] * 1.3, *other[2:])], x[1] * 1.2, channels=6 * width, axis=1)
    x = gate(net, x)
    mean = net.apply("GlobalAveragePool", [x], x[1] * 0.6)
    row = net.op("Flatten", mean[0])
    values, scales, _, bias = net.weights(10, 6 * width, 0.02)
    to = mean[1] * 0.02 * 70 * 70 * math.sqrt(6 * width) / 110, 0
    scores = net.op("QGemm", row, *net.step(mean), net.number(values, INT8, 10, 6 * width),
                    net.floats(*scales, scalar=False), net.number(bytes(10), INT8, 10),
                    net.number(struct.pack("<10i", *bias), INT32, 10),
                    *net.step((None, *to)), domain="com.microsoft", transB=1)
    net.write(path, [(net.op("DequantizeLinear", scores, *net.step((None, *to))), FLOAT, 1, 10),
                     (x[0], INT8, 1, 6 * width, "h", "w")])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    write_u8(options.folder / "quantised_u8.onnx")
    write_s8(options.folder / "quantised_s8.onnx")
    if options.corpus is not None:
        write_u8(options.corpus / "quantised_u8", 1)
        write_s8(options.corpus / "quantised_s8", 1)


if __name__ == "__main__":
    main()
