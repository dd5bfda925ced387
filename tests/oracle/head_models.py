"""Heads of detectors as exporters write them, for check_models.py, at 64 x 96.

    head_models.py FOLDER

Each is three levels of convolutions and what makes one tensor of their cells.
"""

import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, COLUMNS = 64, 96
STRIDES = (4, 8, 16)
RANDOM = numpy.random.default_rng(5)


class Head:
    def __init__(self, channels):
        self.nodes, self.constants, self.levels = [], [], []
        x, width = "image", 3
        for level, stride in enumerate(STRIDES):
            step = 4 if level == 0 else 2
            x = self.conv(x, width, 8, 3, step)
            x = self.op("Relu", x)
            width = 8
            self.levels.append((self.conv(x, 8, channels, 1, 1), ROWS // stride, COLUMNS // stride))

    def constant(self, values):
        name = f"k{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(values), name))
        return name

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, ic, oc, k, step):
        shape = (oc, ic, k, k)
        weight = RANDOM.normal(0, 1.4 / (ic * k * k) ** 0.5, shape).astype(numpy.float32)
        bias = RANDOM.normal(0, 0.2, oc).astype(numpy.float32)
        return self.op("Conv", x, self.constant(weight), self.constant(bias), kernel_shape=[k, k],
                       strides=[step, step], pads=[k // 2] * 4)

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.constant(numpy.array(shape, numpy.int64)))

    def number(self, value):
        return self.constant(numpy.array(value, numpy.float32))

    def flat(self, channels):
        cells = [self.reshape(x, 1, channels, -1) for x, _, _ in self.levels]
        return self.op("Concat", *cells, axis=2)

    def save(self, folder, name, out):
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, ROWS, COLUMNS])
        info = helper.make_tensor_value_info(out, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, name, [image], [info], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        onnx.save(model, str(pathlib.Path(folder) / f"head_{name}.onnx"))


def grid(h, w):
    y, x = numpy.meshgrid(numpy.arange(h), numpy.arange(w), indexing="ij")
    return numpy.stack([x, y], -1).astype(numpy.float32)


def with_bins(folder):
    """YOLOv8: distances from distributions; the softmax before the turn, over the last axis."""
    head = Head(64 + 5)
    box, scores = head.op("Split", head.flat(69), head.constant(numpy.array([64, 5])), outputs=2, axis=1)
    bins = head.op("Transpose", head.reshape(box, 1, 4, 16, -1), perm=[0, 3, 1, 2])
    bins = head.op("Transpose", head.op("Softmax", bins, axis=3), perm=[0, 3, 2, 1])
    weights = head.constant(numpy.arange(16, dtype=numpy.float32).reshape(1, 16, 1, 1))
    sides = head.reshape(head.op("Conv", bins, weights, kernel_shape=[1, 1]), 1, 4, -1)
    cells = numpy.concatenate([grid(h, w).reshape(-1, 2) for _, h, w in head.levels]) + 0.5
    middle = head.number(cells.T[None])
    steps = [numpy.full(h * w, s, numpy.float32) for (_, h, w), s in zip(head.levels, STRIDES)]
    before, after = head.op("Split", sides, outputs=2, axis=1)
    low, high = head.op("Sub", middle, before), head.op("Add", after, middle)
    centre = head.op("Div", head.op("Add", low, high), head.number(2.0))
    boxes = head.op("Concat", centre, head.op("Sub", high, low), axis=1)
    boxes = head.op("Mul", boxes, head.number(numpy.concatenate(steps)))
    head.save(folder, "bins", head.op("Concat", boxes, head.op("Sigmoid", scores), axis=1))


def with_anchors(folder):
    """YOLOv5: three anchors in front of the cells, decoded level by level."""
    head, made = Head(3 * 9), []
    for (x, h, w), step in zip(head.levels, STRIDES):
        x = head.op("Transpose", head.reshape(x, 1, 3, 9, h, w), perm=[0, 1, 3, 4, 2])
        parts = head.op("Split", head.op("Sigmoid", x), head.constant(numpy.array([2, 2, 5])),
                        outputs=3, axis=4)
        cells = numpy.broadcast_to(grid(h, w) - 0.5, (1, 3, h, w, 2)).copy()
        sizes = RANDOM.uniform(4, 40, (1, 3, 1, 1, 2)).astype(numpy.float32)
        place = head.op("Mul", parts[0], head.number(2.0))
        place = head.op("Mul", head.op("Add", place, head.number(cells)), head.number(step))
        size = head.op("Pow", head.op("Mul", parts[1], head.number(2.0)), head.number(2.0))
        size = head.op("Mul", size, head.number(numpy.broadcast_to(sizes, (1, 3, h, w, 2)).copy()))
        x = head.op("Concat", place, size, parts[2], axis=4)
        made.append(head.reshape(x, 1, 3 * h * w, 9))
    head.save(folder, "anchors", head.op("Concat", *made, axis=1))


def cells_first(folder):
    """YOLOX: cells first, and corners as exponents of sizes."""
    head = Head(9)
    x = head.op("Transpose", head.flat(9), perm=[0, 2, 1])
    cells = numpy.concatenate([grid(h, w).reshape(-1, 2) for _, h, w in head.levels])[None]
    steps = numpy.concatenate(
        [numpy.full((1, h * w, 1), s, numpy.float32) for (_, h, w), s in zip(head.levels, STRIDES)], 1)
    parts = head.op("Split", x, head.constant(numpy.array([2, 2, 5])), outputs=3, axis=2)
    place = head.op("Mul", head.op("Add", parts[0], head.number(cells)), head.number(steps))
    size = head.op("Mul", head.op("Exp", parts[1]), head.number(steps))
    scores = head.op("Softmax", parts[2], axis=2)
    head.save(folder, "cells_first", head.op("Concat", place, size, scores, axis=2))


def sorted_boxes(folder):
    """YOLOv10: the best cells, then the best of their scores, as boxes, scores and classes."""
    best, classes = 40, 5
    head = Head(4 + classes)
    x = head.op("Transpose", head.flat(4 + classes), perm=[0, 2, 1])
    boxes, scores = head.op("Split", x, head.constant(numpy.array([4, classes])), outputs=2, axis=2)
    scores = head.op("Sigmoid", scores)
    most = head.constant(numpy.array([best]))
    _, cells = head.op("TopK", head.op("ReduceMax", scores, axes=[-1], keepdims=0), most, outputs=2, axis=1)
    cells = head.op("Unsqueeze", cells, head.constant(numpy.array([-1])))

    def of_cells(values, places, width):
        wide = head.op("Tile", places, head.constant(numpy.array([1, 1, width])))
        return head.op("GatherElements", values, wide, axis=1)

    boxes, scores = of_cells(boxes, cells, 4), of_cells(scores, cells, classes)
    values, places = head.op("TopK", head.op("Flatten", scores), most, outputs=2, axis=1)
    count = head.constant(numpy.array(classes))
    kinds, rows = head.op("Mod", places, count), head.op("Div", places, count)
    rows = head.op("Unsqueeze", rows, head.constant(numpy.array([-1])))
    last = head.constant(numpy.array([-1]))
    made = [of_cells(boxes, rows, 4), head.op("Unsqueeze", values, last),
            head.op("Cast", head.op("Unsqueeze", kinds, last), to=TensorProto.FLOAT)]
    head.save(folder, "sorted", head.op("Concat", *made, axis=2))


def queries(folder):
    """RT-DETR: rows picked by Gather and GatherND, and a tensor of zeros that is written into."""
    head = Head(6)
    x = head.op("Transpose", head.flat(6), perm=[0, 2, 1])
    _, places = head.op("TopK", head.op("ReduceMax", x, axes=[-1], keepdims=0),
                        head.constant(numpy.array([7])), outputs=2, axis=1)
    flat = head.reshape(places, 7)
    rows = head.op("Gather", x, flat, axis=1)
    pairs = head.op("GatherND", x, head.reshape(places, 1, 7, 1), batch_dims=1)
    cells = sum(h * w for _, h, w in head.levels)
    zeros = head.number(numpy.zeros((cells, 6), numpy.float32))
    written = head.op("ScatterND", zeros, head.reshape(places, 7, 1), head.reshape(rows, 7, 6))
    kinds = head.op("ArgMax", rows, axis=2, keepdims=0)
    hot = head.op("OneHot", kinds, head.constant(numpy.array(6)),
                  head.number(numpy.array([0.0, 1.0], numpy.float32)))
    head.save(folder, "queries", head.op("Concat", rows, pairs, hot, head.reshape(written, 1, -1, 6), axis=1))


def main():
    folder = sys.argv[1]
    with_bins(folder)
    with_anchors(folder)
    cells_first(folder)
    sorted_boxes(folder)
    queries(folder)


if __name__ == "__main__":
    main()
