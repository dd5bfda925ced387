"""Outputs as models declare them: shapes without the axis of channels, channels last, and types."""

import numpy as np
import pytest
import rfexec
from conftest import random_image

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

ROWS, COLUMNS = 37, 50


def model(tail, kind):
    """A convolution to 6 channels, "map", and what comes behind it."""
    weights = np.random.default_rng(3).integers(-2, 3, (6, 3, 3, 3)).astype(np.float32)
    constants = [
        numpy_helper.from_array(weights, "w"),
        numpy_helper.from_array(np.float32(0), "zero"),
        numpy_helper.from_array(np.array([0]), "first"),
    ]
    nodes = [helper.make_node("Conv", ["image", "w"], ["map"], pads=[1] * 4), *tail]
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "outputs",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, ROWS, COLUMNS])],
        [helper.make_tensor_value_info("y", kind, None)],
        [c for c in constants if c.name in read],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs.split(), [output], **attributes)


LABELS = [node("ArgMax", "map", "y", axis=1, keepdims=0)]
CASES = [
    ([node("Identity", "map", "y")], TensorProto.FLOAT, lambda m: m),
    (LABELS, TensorProto.INT64, lambda m: m.argmax(1)),
    (
        [node("ArgMax", "map", "a", axis=1), node("Cast", "a", "y", to=TensorProto.UINT8)],
        TensorProto.UINT8,
        lambda m: m.argmax(1)[:, None].astype(np.uint8),
    ),
    ([node("Greater", "map zero", "y")], TensorProto.BOOL, lambda m: m > 0),
    ([node("Squeeze", "map first", "y")], TensorProto.FLOAT, lambda m: m[0]),
    (
        [node("Transpose", "map", "y", perm=[0, 2, 3, 1])],
        TensorProto.FLOAT,
        lambda m: m.transpose(0, 2, 3, 1),
    ),
]


def as_map(array):
    """(1, channels, rows, columns) of any of them."""
    if array.shape[-3:] == (ROWS, COLUMNS, 6):
        array = np.moveaxis(array, -1, -3)
    return array.reshape(1, -1, ROWS, COLUMNS)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_declared_outputs(number):
    tail, kind, expected = CASES[number]
    image = random_image(ROWS, COLUMNS).round()
    with_map = rfexec.open(model(CASES[0][0], CASES[0][1])).run(image)["y"]
    want = expected(with_map)
    net = rfexec.open(model(tail, kind))
    info = net.outputs[0]
    assert (info.shape, info.dtype) == (want.shape, want.dtype.name)
    assert info.map == as_map(want).shape[1:]
    for memory in (None, "24MiB"):
        got = net.run(image, memory)["y"]
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    bands = [band for _, band in net.bands(image)]
    np.testing.assert_array_equal(np.concatenate(bands, axis=2), as_map(want))
    assert bands[0].dtype == want.dtype
    got = [net.part(i, 2).run(image)["y"] for i in (1, 2)]
    axis = want.ndim - (3 if number == 5 else 2)
    np.testing.assert_array_equal(np.concatenate(got, axis=axis), want)


def test_given_arrays_are_float32():
    net = rfexec.open(model(LABELS, TensorProto.INT64))
    image = random_image(ROWS, COLUMNS)
    out = np.empty((1, ROWS, COLUMNS), np.float32)
    assert net.run(image, out=out)["y"] is out
    np.testing.assert_array_equal(out, net.run(image)["y"])


def test_bytes():
    """Outputs of bytes have the model's type, and are numbers with dequantize. The scales are in simple
    ratios: many sums lie half-way between two steps, where the two contracts round differently."""
    rng = np.random.default_rng(1)
    constants = [
        numpy_helper.from_array(np.float32(value), name)
        for name, value in (("a", 0.044), ("b", 0.11), ("c", 0.0264))
    ] + [numpy_helper.from_array(np.int8(value), f"{name}0") for name, value in zip("abc", (-106, 70, 39))]
    nodes = [
        node("QuantizeLinear", "image a a0", "q"),
        node("DequantizeLinear", "q a a0", "d"),
        node("QuantizeLinear", "image b b0", "r"),
        node("DequantizeLinear", "r b b0", "e"),
        node("Add", "d e", "sum"),
        node("QuantizeLinear", "sum c c0", "y"),
    ]
    made = helper.make_model(
        helper.make_graph(
            nodes,
            "bytes",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, ROWS, COLUMNS])],
            [helper.make_tensor_value_info("y", TensorProto.INT8, None)],
            constants,
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    image = rng.uniform(-3, 3, (1, 3, ROWS, COLUMNS)).astype(np.float32)
    results = {}
    for int8 in ("ort", "spec"):
        y = rfexec.open(made, int8=int8).run(image)["y"]
        numbers = rfexec.open(made, int8=int8, dequantize=True).run(image)["y"]
        assert y.dtype == np.int8 and numbers.dtype == np.float32
        assert np.array_equal(numbers, (y.astype(np.float32) - 39) * np.float32(0.0264))
        results[int8] = y.astype(int)
    distance = np.abs(results["ort"] - results["spec"])
    assert distance.max() == 1 and 0 < np.count_nonzero(distance) < 0.5 * distance.size
