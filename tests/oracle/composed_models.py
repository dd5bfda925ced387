"""Operators that rfexec composes of others, and quantised weights, against ONNX Runtime.

    composed_models.py build/rfexec

Each model runs whole, and `rfexec verify` compares it with a run in 3x3 tiles, bit by bit. Where ONNX Runtime
does not know an operator, the reference evaluator of the `onnx` package is asked.
"""

import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import rfexec_cli

TOLERANCE = 5e-5  # of the output's largest magnitude: positions of pixels are float32
SHAPE = (1, 4, 37, 50)
rng = np.random.default_rng(3)


def floats(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def node(kind, inputs, output="y", **attrs):
    return helper.make_node(kind, inputs.split(), output.split(), **attrs)


def cases():
    """(name, opset, nodes, constants, type of the input)."""
    kind, weights = TensorProto.FLOAT, {"w": floats(6, 4, 3, 3), "b": floats(6)}
    pads = {"pads": [1, 1, 1, 1]}
    for name, params in (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]),
                         ("HardSigmoid", [0.3, 0.4])):
        attrs = dict(pads, domain="com.microsoft", activation=name)
        if params:
            attrs["activation_params"] = [float(value) for value in params]
        yield f"fused_{name}", 17, [node("FusedConv", "x w b", **attrs)], weights, kind
    yield "fused_sum", 17, [node("Conv", "x w b", "z", **pads),
                            node("FusedConv", "x w b z", domain="com.microsoft", activation="Relu", **pads)], \
        weights, kind
    yield "fused_batch", 17, [
        node("Reshape", "x two", "z"), node("FusedConv", "z w b", "c", activation="Relu", domain="com.microsoft", **pads),
        node("Reshape", "c twelve")], {
            "two": np.array([2, 2, 37, 50], np.int64), "twelve": np.array([1, 12, 37, 50], np.int64),
            "w": floats(6, 2, 3, 3), "b": floats(6)}, kind
    for name in ("Tan", "Atan", "Sinh", "Cosh", "Asinh"):
        yield name.lower(), 17, [node(name, "x")], {}, kind
    for name in ("Asin", "Acos", "Atanh"):
        yield name.lower(), 17, [node("Tanh", "x", "t"), node(name, "t")], {}, kind
    yield "acosh", 17, [node("Exp", "x", "e"), node("Add", "e one", "o"), node("Acosh", "o")], \
        {"one": np.float32(1)}, kind
    for axis in (1, 2, 3, -1):  # over channels by rows, over others whole
        yield f"hardmax_{axis}", 17, [node("Hardmax", "x", axis=axis)], {}, kind
    yield "hardmax_old", 11, [node("Hardmax", "x", axis=2)], {}, kind
    for sizes in ([21, 31], [40, 61], [20, 61], [41, 31]):
        yield f"center_{sizes[0]}_{sizes[1]}", 18, [node("CenterCropPad", "x s", axes=[2, -1])], \
            {"s": np.array(sizes, np.int64)}, kind
    yield "center_channels", 18, [node("CenterCropPad", "x s")], {"s": np.array([1, 7, 38, 49], np.int64)}, kind
    yield "center_few", 18, [node("CenterCropPad", "x s", axes=[1])], {"s": np.array([3], np.int64)}, kind
    for name, block, attrs in (("plain", [2, 2], {"strides": [2, 2]}),
                               ("overlap", [2, 2], {"pads": [1, 0, 0, 1]}),
                               ("wide", [2, 2], {"dilations": [2, 3], "strides": [1, 2]})):
        extent = [1 + (attrs.get("dilations", [1, 1])[i] * (block[i] - 1)) for i in range(2)]
        around = attrs.get("pads", [0] * 4)
        steps = attrs.get("strides", [1, 1])
        image = [(n - 1) * steps[i] + extent[i] - around[i] - around[i + 2] + (name == "wide") * i
                 for i, n in enumerate((37, 50))]
        yield f"col2im_{name}", 18, [node("Reshape", "x r", "f"), node("Col2Im", "f i k", **attrs)], \
            {"r": np.array([1, 4, 37 * 50], np.int64), "i": np.array(image, np.int64),
             "k": np.array(block, np.int64)}, kind
    for corners in (0, 1):
        yield f"affine_{corners}", 20, [node("AffineGrid", "t s", "g", align_corners=corners),
                                        node("GridSample", "x g", align_corners=corners)], \
            {"t": np.array([[[0.8, 0.3, 0.1], [-0.2, 0.9, -0.3]]], np.float32),
             "s": np.array([1, 4, 29, 61], np.int64)}, kind
    for to in (TensorProto.UINT16, TensorProto.INT16):
        yield f"image_{to}", 17, [node("Cast", "x", "f", to=1), node("Conv", "f w b", **pads)], weights, to
    for to, dtype in ((TensorProto.UINT8, np.uint8), (TensorProto.INT8, np.int8)):  # sums are exact in float32
        yield f"image_{to}", 17, [
            node("DequantizeLinear", "x s z", "f"), node("DequantizeLinear", "wq ws wz", "v"),
            node("Conv", "f v", "c", **pads), node("QuantizeLinear", "c t z", "q"), node("DequantizeLinear", "q t z")], {
                "s": np.float32(1 / 64), "z": dtype(20), "ws": np.float32(1 / 128), "wz": np.int8(0),
                "t": np.float32(1 / 16), "wq": rng.integers(-128, 128, (6, 4, 3, 3)).astype(np.int8)}, to
    yield from quantised(kind, pads)


def quantised(kind, pads):
    """Weights of all types, with one scale, one per axis, one per block."""
    def conv(name, opset, x, scale, zero, **attrs):
        values = {"q": x, "s": scale} | ({} if zero is None else {"z": zero})
        return (f"dequantise_{name}", opset,
                [node("DequantizeLinear", " ".join(values), "w", **attrs), node("Conv", "x w", **pads)], values, kind)

    for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.int32):
        ends = np.iinfo(dtype)
        opset = 21 if dtype in (np.uint16, np.int16) else 17
        x = rng.integers(max(ends.min, -10**9), min(ends.max, 10**9), (6, 4, 3, 3)).astype(dtype)
        zero = None if dtype == np.int32 else dtype(rng.integers(ends.min, ends.max))
        name = np.dtype(dtype).name
        yield conv(name, opset, x, np.float32(0.013), zero)
        zeros = None if dtype == np.int32 else rng.integers(ends.min, ends.max, 6).astype(dtype)
        yield conv(f"{name}_axis0", opset, x, np.abs(floats(6)), zeros, axis=0)
    for four in (TensorProto.INT4, TensorProto.UINT4):  # an odd number of elements, too
        low = -8 if four == TensorProto.INT4 else 0
        for count in (6, 5):
            values = rng.integers(low, low + 15, (count, 4, 3, 3))
            x = helper.make_tensor("q", four, values.shape, values.flatten().tolist())
            raw = onnx.TensorProto()
            raw.CopyFrom(x)
            del raw.int32_data[:]
            raw.raw_data = bytes(value & 255 for value in x.int32_data)
            for form, name in ((x, "varints"), (raw, "raw")):
                yield conv(f"four_bits_{four}_{count}_{name}", 21, form, np.abs(floats(count, 2, 3, 3)), None, axis=1,
                           block_size=2)
    x = rng.integers(-128, 127, (6, 4, 3, 3)).astype(np.int8)
    yield conv("axis1", 17, x, np.abs(floats(4)), np.zeros(4, np.int8))
    yield conv("blocks", 21, x, np.abs(floats(6, 2, 3, 3)), None, axis=1, block_size=2)
    yield conv("blocks_zero", 21, x, np.abs(floats(3, 4, 3, 3)), rng.integers(-9, 9, (3, 4, 3, 3)).astype(np.int8),
               axis=0, block_size=2)


def named(value, name):
    """A constant of the model: a tensor as it is, or an array."""
    if isinstance(value, onnx.TensorProto):
        value.name = name
        return value
    return numpy_helper.from_array(np.asarray(value), name)


def expected_of(model, image):
    """What ONNX Runtime or else the evaluator makes of it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        return session.run(None, {"x": image})[0]
    except Exception:  # an operator or a type that it does not have
        return ReferenceEvaluator(model).run(None, {"x": image})[0]


def check(program, work, case):
    """What is wrong, or None."""
    name, opset, nodes, constants, kind = case
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", kind, SHAPE)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [named(value, key) for key, value in constants.items()])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset),
                                                                   helper.make_opsetid("com.microsoft", 1)])
    image = rng.standard_normal(SHAPE).astype(np.float32)
    if kind != TensorProto.FLOAT:
        ends = np.iinfo(helper.tensor_dtype_to_np_dtype(kind))
        image = rng.integers(ends.min, ends.max + 1, SHAPE).astype(ends.dtype)
    onnx.save(model, work + "/model.onnx")
    expected = expected_of(model, image)
    try:
        _, ours = rfexec_cli.run(program, work + "/model.onnx", image, work)
    except (rfexec_cli.Refused, RuntimeError) as error:
        return f"{name}: {error}"
    if ours["y"].shape != expected.shape:
        return f"{name}: shape {ours['y'].shape}, expected {expected.shape}"
    worst = rfexec_cli.worst_error(ours["y"], expected)
    if worst > TOLERANCE:
        return f"{name}: differs by {worst:.2g} of the largest value"
    done = subprocess.run([program, "verify", work + "/model.onnx", work + "/input.npy", "--tiles", "3x3"],
                          capture_output=True, text=True, check=False)
    whole = name.startswith("hardmax") and name != "hardmax_1"
    if done.returncode == 0 or (whole and "cannot be tiled" in done.stderr):
        return None
    return f"{name}: verify: {done.stdout}{done.stderr}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as work:
        results = [check(sys.argv[1], work, case) for case in cases()]
    failed = [text for text in results if text is not None]
    for text in failed:
        print(text)
    print(f"composed operators: {len(results)} models, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
