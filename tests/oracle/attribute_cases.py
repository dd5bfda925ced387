"""Every attribute of ONNX's schemas, of every operator that rfexec reads: obeyed, refused or listed.

A node of each operator, in the versions of its schema, gets one attribute after the other with several
values. What rfexec makes of it has to be what ONNX Runtime, or else the reference evaluator of the `onnx`
package, makes of it, or rfexec has to refuse it in words. Of each attribute a value has to show that it is
read: by a result that differs from that without it, or by a refusal. The others are listed, with the reason,
in the table at the end of rfexec/onnx/import/onnx_attributes.c. An attribute that no schema has must be
refused by its name.

    attribute_cases.py build/rfexec [--every]      RFX_CASES set to any number is --every

--every takes all versions of all schemas; otherwise the newest with the attribute, and the oldest of those
that ONNX Runtime runs (opset 7 on). Nodes whose operands are all constant are tried in the newest.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import rfexec_cli

TABLE = pathlib.Path(__file__).parent / "../../rfexec/onnx/import/onnx_attributes.c"
TOLERANCE = 1e-3  # float16 is float32 in rfexec
NEWEST_OPSET = 26  # of ONNX Runtime; schemas above are compared with the evaluator
SHAPE = (1, 4, 6, 8)
rng = np.random.default_rng(5)

# Where neither ONNX Runtime nor the evaluator answers and rfexec does: why that is right.
NO_ORACLE = {
    ("Mod", "fmod"): "whole numbers are float32 in rfexec: fmod = 0 of float32 is that of integers",
    ("GridSample", "mode"): "the names before opset 20, bilinear and bicubic, are read in all",
    ("TopK", "sorted"): "0: any order is right",
    ("Reshape", "shape"): "of opset 1",
}
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Greater", "Less", "And", "Or", "Xor")
# never of the image's values
FROM_CONSTANTS = ("AffineGrid", "DequantizeLinear", "Constant", "ConstantOfShape", "NonZero", "Range",
                  "Shape", "Size")


def floats(*shape):
    return rng.uniform(0.2, 1.0, shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)




def recipe(op, since):
    """Inputs ("x", a constant, or "" where it is left out), attributes, and outputs of a node."""
    n_out = 1
    inputs, attrs = ["x"], {}
    same = floats(*SHAPE)
    if op in ARITHMETIC and since < 7:
        part = floats(4, 6) > 0.5 if op in ("And", "Or", "Xor") else floats(4, 6)
        inputs, attrs = ["x", part], {"axis": 1, "broadcast": 1}
    elif op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum", "Equal", "Greater", "GreaterOrEqual", "Less",
              "LessOrEqual", "Pow", "Mod"):
        inputs = ["x", same]
        attrs = {"fmod": 1} if op == "Mod" else {}
    elif op in ("And", "Or", "Xor"):
        inputs = ["x", same > 0.5]
    elif op == "Where":
        inputs = [same > 0.5, "x", same]
    elif op in ("ArgMax", "ArgMin"):
        attrs = {"axis": 1}
    elif op == "AffineGrid":
        inputs = [np.array([[[0.8, 0.3, 0.1], [-0.2, 0.9, -0.3]]], np.float32), ints(1, 4, 5, 7)]
    elif op == "CenterCropPad":
        inputs, attrs = ["x", ints(7, 5)], {"axes": [2, 3]}
    elif op == "Col2Im":
        inputs = ["x", ints(7, 9), ints(2, 2)]
        attrs = {"dilations": [1, 1], "pads": [0, 0, 0, 0], "strides": [1, 1]}
    elif op == "DequantizeLinear":
        inputs = [np.arange(16, dtype=np.uint8).reshape(4, 4), floats(4)]
        attrs = {"axis": 0} if since >= 13 else {}
        inputs[1] = inputs[1] if since >= 13 else np.float32(0.3)
    elif op == "QuantizeLinear":
        inputs = ["x", np.float32(0.02)]
    elif op == "QLinearConv":  # small weights: products of neighbours do not saturate in 16 bits
        weights, bias = rng.integers(-20, 21, (6, 2, 3, 3)).astype(np.int8), rng.integers(-500, 500, 6).astype(np.int32)
        inputs = ["x", np.float32(0.02), np.uint8(0), weights, np.float32(0.01), np.int8(0), np.float32(0.05),
                  np.uint8(100), bias]
        attrs = {"group": 2}
    elif op == "QLinearMatMul":
        weights = rng.integers(-20, 21, (192, 5)).astype(np.int8)
        inputs = ["x", np.float32(0.02), np.uint8(0), weights, np.float32(0.01), np.int8(0), np.float32(0.05),
                  np.uint8(100)]
    elif op == "ConvInteger":
        inputs, attrs = ["x", rng.integers(-20, 21, (6, 2, 3, 3)).astype(np.int8)], {"group": 2}
    elif op == "MatMulInteger":
        inputs = ["x", rng.integers(-20, 21, (192, 5)).astype(np.int8)]
    elif op == "Attention":
        inputs, attrs = ["x", floats(1, 5, 8), floats(1, 5, 8)], {"q_num_heads": 2, "kv_num_heads": 2}
    elif op in ("AveragePool", "MaxPool", "LpPool"):
        attrs, n_out = {"kernel_shape": [3, 3], "strides": [2, 2]}, 2 if op == "MaxPool" and since >= 8 else 1
    elif op == "BatchNormalization":
        inputs = ["x"] + [floats(4) for _ in range(4)]
        attrs = {"is_test": 1} if since < 7 else {}
        if since == 1:
            attrs["consumed_inputs"] = [0, 0, 0, 1, 1]
    elif op == "Cast":
        attrs = {"to": "FLOAT" if since == 1 else 1}
    elif op == "CastLike":
        inputs = ["x", floats(1)]
    elif op == "Clip":
        inputs = ["x"] if since < 11 else ["x", np.float32(0.3), np.float32(0.6)]
        attrs = {"min": 0.3, "max": 0.6} if since < 11 else {}
    elif op == "Concat":
        inputs, attrs = ["x", same], {"axis": 1}
    elif op == "Constant":
        inputs, attrs = [], {"value": numpy_helper.from_array(floats(3), "v")}
    elif op == "ConstantOfShape":
        inputs = [ints(1, 4, 2, 2)]
    elif op == "Conv":
        inputs, attrs = ["x", floats(6, 2, 3, 3), floats(6)], {"group": 2}
    elif op == "ConvTranspose":
        inputs, attrs = ["x", floats(4, 3, 3, 3)], {"group": 2, "strides": [2, 2]}
    elif op == "CumSum":
        inputs = ["x", ints(1)]
    elif op in ("DepthToSpace", "SpaceToDepth"):
        attrs = {"blocksize": 2}
    elif op == "Einsum":
        inputs, attrs = ["x", same], {"equation": "nchw,nchw->nchw"}
    elif op == "Expand":
        inputs = ["x", ints(1, 4, 6, 8)]
    elif op == "Gather":
        inputs, attrs = ["x", ints(1, 0, 3)], {"axis": 1}
    elif op == "GatherElements":
        inputs, attrs = ["x", rng.integers(0, 1, SHAPE)], {"axis": 0}
    elif op == "GatherND":
        inputs = ["x", ints([0, 1], [0, 3])]
    elif op == "Gemm":
        inputs = ["x", floats(192, 192), floats(1, 192)]
        attrs = {"broadcast": 1} if since < 7 else {}
    elif op == "GridSample":
        inputs = ["x", rng.uniform(-1.4, 1.4, (1, 5, 7, 2)).astype(np.float32)]
    elif op == "GroupNormalization":
        inputs, attrs = ["x"] + [floats(2 if since < 21 else 4) for _ in range(2)], {"num_groups": 2}
    elif op == "InstanceNormalization":
        inputs = ["x", floats(4), floats(4)]
    elif op == "LRN":
        attrs = {"size": 3}
    elif op in ("LayerNormalization", "RMSNormalization"):
        inputs = ["x", floats(8)]
    elif op == "MatMul":
        inputs = ["x", floats(8, 5)]
    elif op == "MaxUnpool":
        inputs, attrs = ["x", "places"], {"kernel_shape": [2, 2], "strides": [2, 2]}
    elif op == "OneHot":
        inputs = ["x", ints(4), np.array([0, 1], np.float32)]
    elif op == "PRelu":
        inputs = ["x", floats(*SHAPE) if since < 7 else floats(4, 1, 1)]
    elif op == "Pad":
        pads = [0, 0, 1, 1, 0, 0, 2, 1]
        inputs = ["x", ints(*pads)] if since >= 11 else ["x"]
        attrs = {} if since >= 11 else {"paddings" if since == 1 else "pads": pads}
    elif op == "Range":
        inputs = [np.float32(1), np.float32(9), np.float32(2)]
    elif op == "Reshape":
        inputs, attrs = (["x"], {"shape": [1, 2, 12, 8]}) if since < 5 else (["x", ints(1, 0, 8, -1)], {})
    elif op in ("Resize", "Upsample"):
        scales = np.array([1, 1, 0.55, 1.77] if op == "Resize" else [1, 1, 2, 1.5], np.float32)
        inputs = ["x"] + ([np.zeros(0, np.float32), scales] if op == "Resize" and since > 10 else [scales])
        if op == "Upsample" and since < 9:
            inputs = ["x"]
            attrs = {"height_scale": 2.0, "width_scale": 1.5} if since == 1 else {"scales": scales.tolist()}
    elif op in ("Scatter", "ScatterElements"):
        inputs, attrs = ["x", rng.integers(0, 1, (1, 2, 3, 8)), floats(1, 2, 3, 8)], {"axis": 0}
    elif op == "ScatterND":
        inputs = ["x", ints([0, 1], [0, 3]), floats(2, 6, 8)]
    elif op == "Slice":
        bounds = {"starts": [0], "ends": [3], "axes": [2]}
        inputs = ["x"] if since < 10 else ["x"] + [ints(*value) for value in bounds.values()]
        attrs = bounds if since < 10 else {}
    elif op == "Split":
        attrs, n_out = {"axis": 1}, 2
        if since >= 18:
            attrs["num_outputs"] = 2
    elif op == "Squeeze":
        attrs = {"axes": [0]} if since < 13 else {}
    elif op == "Unsqueeze":
        inputs, attrs = (["x"], {"axes": [0]}) if since < 13 else (["x", ints(0)], {})
    elif op == "Tile":
        inputs = ["x", ints(1, 2, 1, 1)]
    elif op == "TopK":
        inputs, attrs, n_out = (["x"], {"k": 3}, 2) if since < 10 else (["x", ints(3)], {}, 2)
    return inputs, attrs, n_out


# What stands between the image and the operator.
IN_FRONT = {
    "Col2Im": [("Reshape", ints(1, 4, 48))],
    "Attention": [("Flatten", {"axis": 3}), ("Unsqueeze", ints(0))],
    "And": [("Cast", {"to": TensorProto.BOOL})], "Or": [("Cast", {"to": TensorProto.BOOL})],
    "Xor": [("Cast", {"to": TensorProto.BOOL})], "Not": [("Cast", {"to": TensorProto.BOOL})],
    "Gemm": [("Flatten", {"axis": 1})], "OneHot": [("ArgMax", {"axis": 1, "keepdims": 0})],
    "QLinearConv": [("QuantizeLinear", np.array(0.02, np.float32))],
    "QLinearMatMul": [("Flatten", {"axis": 1}), ("QuantizeLinear", np.array(0.02, np.float32))],
    "ConvInteger": [("QuantizeLinear", np.array(0.02, np.float32))],
    "MatMulInteger": [("Flatten", {"axis": 1}), ("QuantizeLinear", np.array(0.02, np.float32))],
    "MaxUnpool": [("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]})],
}

VALUES = {  # by attribute, or (operator, attribute)
    "axis": [0, 1, 2, 3, -1, -2, 7], "axes": [[1], [2, 3], [-1], [0, 2, 3], [3, 2]],
    "auto_pad": ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "SAME"],
    "pads": [[1, 0, 2, 1], [1, 1, 1, 1]], "strides": [[2, 1], [3, 3]], "dilations": [[2, 1], [1, 2]],
    "kernel_shape": [[3, 3], [2, 3], [3]], "output_padding": [[1, 0], [1, 1]], "output_shape": [[14, 18]],
    "padding_mode": ["zeros", "border", "reflection", "wrap"],
    ("GridSample", "mode"): ["nearest", "linear", "bilinear", "cubic", "bicubic", "area"],
    ("DepthToSpace", "mode"): ["DCR", "CRD", "RDC"], ("SpaceToDepth", "mode"): ["DCR", "CRD", "RDC"],
    ("Resize", "mode"): ["nearest", "linear", "cubic", "area"],
    ("Resize", "axes"): [[0, 1, 2, 3], [3, 2]], ("Upsample", "mode"): ["nearest", "linear", "cubic"],
    ("Pad", "mode"): ["constant", "reflect", "edge", "wrap", "mirror"],
    ("Pad", "pads"): [[0, 0, 0, 2, 0, 0, 1, 1]], ("Pad", "paddings"): [[0, 0, 0, 2, 0, 0, 1, 1]],
    "coordinate_transformation_mode": ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                                       "half_pixel_symmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"],
    "nearest_mode": ["floor", "ceil", "round_prefer_ceil", "simple"],
    "keep_aspect_ratio_policy": ["stretch", "not_larger", "fit"],
    "approximate": ["none", "tanh", "sigmoid"], "reduction": ["none", "add", "mul", "max", "min", "mean"],
    "equation": ["nchw,nchw->nc", "nchw,nchw->nhwc"], "round_mode": ["up", "down", "nearest"],
    "perm": [[0, 2, 3, 1], [0, 1, 3, 2]], "split": [[1, 3], [3, 1]], "shape": [[1, 1, 24, 8]],
    "consumed_inputs": [[0, 0, 0, 1, 1]], "starts": [[1]], "ends": [[5]], "scales": [[1.0, 1.0, 3.0, 1.0]],
    ("Col2Im", "pads"): [[1, 0, 0, 1]], ("Col2Im", "strides"): [[2, 2]], ("Col2Im", "dilations"): [[2, 2]],
    "output_dtype": [1, 3], "block_size": [2], ("CenterCropPad", "axes"): [[3, 2], [-2, -1]],
    ("Cast", "to"): [1, 6, 7, 9, 10, 8, 17], "group": [1, 2, 4], "num_groups": [1, 2, 4, 3],
    "softmax_precision": [1, 10], "stash_type": [1, 10, 16], ("TopK", "k"): [1, 4],
    "value_float": [0.5], "value_floats": [[0.5, 2.0]], "value_int": [3], "value_ints": [[3, 4]],
    "value_string": ["a"], "value_strings": [["a", "b"]],
    ("Constant", "value"): [numpy_helper.from_array(np.array([4, 5], np.float32), "v")],
    ("ConstantOfShape", "value"): [numpy_helper.from_array(np.array([4], np.float32), "v"),
                                   numpy_helper.from_array(ints(4), "v")],
    "sparse_value": [helper.make_sparse_tensor(numpy_helper.from_array(np.array([7], np.float32), "v"),
                                               numpy_helper.from_array(ints(2), "i"), [5])],
    "end": [1, 2, -1], "start": [1, -2], "q_num_heads": [2], "kv_num_heads": [2], "p": [1, 2, 3, 0],
    "blocksize": [1, 2, 3], "epsilon": [0.5], "ratio": [0.3], "alpha": [0.3, 1.7], "size": [1, 5],
    "left_window_size": [1], "right_window_size": [0], ("Pad", "value"): [0.7], "saturate": [0, 1],
}
CONTEXT = {  # what an attribute takes to have an effect
    ("Resize", "cubic_coeff_a"): {"mode": "cubic"}, ("Resize", "exclude_outside"): {"mode": "cubic"},
    ("Resize", "antialias"): {"mode": "linear"},
    ("LRN", "beta"): {"alpha": 3.0}, ("LRN", "size"): {"alpha": 3.0}, ("LRN", "bias"): {"alpha": 3.0},
}
BY_TYPE = {"INT": [0, 1, 2], "FLOAT": [0.3, 1.7], "STRING": ["odd"], "INTS": [[1], [0, 1]]}


def image_for(op):
    """The same values each time."""
    rng = np.random.default_rng(7)
    image = rng.standard_normal(SHAPE).astype(np.float32)
    if op in ("Log", "Sqrt", "Pow", "ReduceLogSum"):
        image = np.abs(image) + 0.1
    if op == "Mod":
        image = rng.integers(-9, 9, SHAPE).astype(np.float32)
    if op in ("ArgMax", "ArgMin"):
        image = np.round(image)
    if op == "IsInf":
        image[0, 0, 0, :2] = [np.inf, -np.inf]
    if op in ("And", "Or", "Xor", "Not"):
        image = (image > 0).astype(np.float32)
    if op in ("Acos", "Asin", "Atanh"):
        image = np.clip(image, -0.9, 0.9)
    if op == "Acosh":
        image = np.abs(image) + 1
    return image


def make_model(op, since, node, constant):
    """The node on the image, or (constant) on an initialiser beside a Relu of the image."""
    inputs, attrs, n_out = node
    nodes, constants, names = [], [], []
    start = "x"
    if constant:
        start = "given"
        constants.append(numpy_helper.from_array(image_for(op), "given"))
        nodes.append(helper.make_node("Relu", ["x"], ["other"]))
    for k, (kind, options) in enumerate(IN_FRONT.get(op, [])):
        more = []
        if isinstance(options, np.ndarray):
            constants.append(numpy_helper.from_array(options, f"front{k}_in"))
            more, options = [f"front{k}_in"], {}
        outputs = [f"front{k}", "places"] if kind == "MaxPool" else [f"front{k}"]
        nodes.append(helper.make_node(kind, [start] + more, outputs, **options))
        start = outputs[0]
    for k, value in enumerate(inputs):
        if isinstance(value, str):
            names.append(start if value == "x" else value)
        else:
            names.append(f"c{k}")
            constants.append(numpy_helper.from_array(np.asarray(value), f"c{k}"))
    outputs = [f"y{k}" for k in range(n_out)]
    nodes.append(helper.make_node(op, names, outputs, **attrs))
    outputs += ["other"] if constant else []
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
                              [helper.make_empty_tensor_value_info(name) for name in outputs], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", since)], ir_version=10)


def broadcast_of_old(node):
    """The node of opset 7 that one of opset 1 or 6 with broadcast is."""
    inputs, attrs, n_out = node
    axis, missing = attrs.get("axis"), len(SHAPE) - inputs[1].ndim
    if missing > 0 and attrs.get("broadcast") != 1:
        return None
    if axis is not None:
        behind = len(SHAPE) - axis % len(SHAPE) - inputs[1].ndim
        if behind < 0 or not -len(SHAPE) <= axis < len(SHAPE):
            return None
        inputs = ["x", inputs[1].reshape(inputs[1].shape + (1,) * behind)]
    return inputs, {}, n_out


def expected_of(op, since, node, image, constant):
    """What is right: by this version, or by another one whose schema has the same inputs and attributes."""
    inputs, attrs, _ = node
    if op in ARITHMETIC and since < 7:
        node = broadcast_of_old(node)
        return None if node is None else oracle(make_model(op, 7, node, constant), image)
    versions = [schema for schema in defs.get_all_schemas_with_history() if schema.name == op and schema.domain == ""]
    known = [since] + sorted({7, 9, 10} | {schema.since_version for schema in versions}, reverse=True)
    for opset in known:
        if opset != since and opset < 7:
            continue
        try:
            schema = defs.get_schema(op, opset)
        except onnx.defs.SchemaError:
            continue
        if schema.deprecated or not set(attrs) <= set(schema.attributes):
            continue
        if not schema.min_input <= len(inputs) <= schema.max_input:
            continue
        values = oracle(make_model(op, opset, node, constant), image)
        if values is not None:
            return values
    return None


def oracle(model, image):
    """What ONNX Runtime or else the evaluator makes of it; None: neither runs it."""
    opset = model.opset_import[0].version
    if 7 <= opset <= NEWEST_OPSET:
        try:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            typed = onnx.shape_inference.infer_shapes(model)
            session = onnxruntime.InferenceSession(typed.SerializeToString(), options,
                                                   providers=["CPUExecutionProvider"])
            return session.run(None, {"x": image})
        except Exception:  # whatever it raises: the evaluator may know
            pass
    try:
        return ReferenceEvaluator(model).run(None, {"x": image})
    except Exception:
        return None


class Walk:
    """Runs nodes, counts outcomes and keeps what failed."""

    def __init__(self, program, work, every):
        self.program, self.work, self.every = program, work, every
        self.failed, self.counts = [], collections.Counter()
        rows = re.findall(r'\{(NULL|"\w+"), "(\w+)", (?:ANY|\d+)\}', TABLE.read_text())
        self.passed_over = {(op.strip('"'), name) for op, name in rows}

    def run(self, model, image):
        """Outputs, or the text of the refusal."""
        path = self.work + "/node.onnx"
        onnx.save(model, path)
        try:
            _, ours = rfexec_cli.run(self.program, path, image, self.work)
        except rfexec_cli.Refused as refused:
            return str(refused)
        except RuntimeError as error:
            return str(error)
        return [ours[value.name] for value in model.graph.output]

    def is_listed(self, op, name):
        return ("NULL", name) in self.passed_over or (op, name) in self.passed_over

    def same(self, ours, theirs):
        """Whether two lists of arrays have the same values."""
        if len(ours) != len(theirs):
            return False
        for a, b in zip(ours, theirs):
            if a.shape != np.shape(b):
                return False
            if rfexec_cli.worst_error(a.astype(np.float64), np.asarray(b).astype(np.float64)) > TOLERANCE:
                return False
        return True

    def value(self, op, since, name, attrs, node, constant):
        """One value of an attribute; returns what it was, and whether that shows that it is read."""
        inputs, without, n_out = node
        image = image_for(op)
        constant = constant or op in FROM_CONSTANTS
        model = make_model(op, since, (inputs, attrs, n_out), constant)
        ours = self.run(model, image)
        text = f"{op} of opset {since}, {name} = {attrs.get(name)}{', constant' if constant else ''}"
        if isinstance(ours, str):
            return "refused", True
        base = self.run(make_model(op, since, (inputs, without, n_out), constant), image)
        differs = isinstance(base, str) or not self.same(ours, base)
        if (op, name) == ("Cast", "to") and since == 1:
            node, since = (inputs, {"to": getattr(TensorProto, attrs["to"])}, n_out), 7
        else:
            node = (inputs, attrs, n_out)
        expected = None if (op, name) == ("TopK", "sorted") else expected_of(op, since, node, image, constant)
        if expected is None:
            if not self.is_listed(op, name) and (op, name) not in NO_ORACLE:
                self.failed.append(f"{text}: runs, and nothing says what is right")
            return "without an oracle", differs
        if not self.same(ours, expected):
            self.failed.append(f"{text}: neither refused nor right")
            return "wrong", False
        return "obeyed", differs

    def attribute(self, op, since, name, schema, constant):
        """All values of an attribute; returns whether one shows that it is read."""
        node = recipe(op, since)
        inputs, attrs, n_out = node
        kind = schema.attributes[name].type.name
        values = VALUES.get((op, name), VALUES.get(name, BY_TYPE.get(kind)))
        if op == "Cast" and since == 1:
            values = ["FLOAT", "BOOL", "INT32"]
        if kind == "FLOAT" and isinstance(values[0], int):
            values = [float(value) for value in values]
        read = False
        attrs.update(CONTEXT.get((op, name), {}))
        for value in values:
            changed = {name: value} if op == "Constant" else dict(attrs, **{name: value})
            outcome, shows = self.value(op, since, name, changed, node, constant)
            self.counts[outcome] += 1
            read = read or shows
        if name in attrs and not schema.attributes[name].required and op != "Constant":
            less = {key: value for key, value in attrs.items() if key != name}
            read = self.value(op, since, name, less, node, constant)[1] or read
        return read

    def operator(self, op):
        """All versions and attributes of an operator."""
        versions = sorted({schema.since_version for schema in defs.get_all_schemas_with_history()
                           if schema.name == op and schema.domain == "" and not schema.deprecated})
        shown = {}
        for since in versions:
            schema = defs.get_schema(op, since)
            for name in schema.attributes:
                shown.setdefault(name, False)
                having = [v for v in versions if name in defs.get_schema(op, v).attributes]
                run = [v for v in having if v >= 7] or having
                if not self.every and since not in (run[0], run[-1]):
                    continue
                shown[name] = self.attribute(op, since, name, schema, False) or shown[name]
                if since == having[-1]:
                    self.attribute(op, since, name, schema, True)
        for name, is_read in shown.items():
            if not is_read and not self.is_listed(op, name):
                self.failed.append(f"{op}: no value shows that {name} is read")
        self.unknown(op, versions[-1])

    def unknown(self, op, since):
        """The node runs, and an attribute that no schema has is refused by its name."""
        inputs, attrs, n_out = recipe(op, since)
        image = image_for(op)
        always = op in FROM_CONSTANTS
        ours = self.run(make_model(op, since, (inputs, attrs, n_out), always), image)
        expected = expected_of(op, since, (inputs, attrs, n_out), image, always)
        if isinstance(ours, str) or expected is None or not self.same(ours, expected):
            self.failed.append(f"{op} of opset {since}: the node itself does not run: {str(ours)[:200]}")
            return
        for constant in (False, True):
            odd = dict(attrs, no_such_attribute=3)
            ours = self.run(make_model(op, since, (inputs, odd, n_out), constant or always), image)
            named = isinstance(ours, str) and ("no_such_attribute" in ours or constant)
            if not named:
                self.failed.append(f"{op}{' of constants' if constant else ''}: an unknown attribute is not refused")


def operators(program):
    """The operators of rfexec's table that ONNX has."""
    text = subprocess.run([program, "operators"], capture_output=True, text=True, check=True).stdout
    names = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:]
    return [name for name in names if defs.has(name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--every", action="store_true", default="RFX_CASES" in os.environ)
    parser.add_argument("--only", help="one operator")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        walk = Walk(options.program, work, options.every)
        names = [options.only] if options.only else operators(options.program)
        for name in names:
            walk.operator(name)
    for text in walk.failed:
        print(text)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(walk.counts.items()))
    print(f"attributes of {len(names)} operators: values {counts}; {len(walk.failed)} failed")
    return 1 if walk.failed else 0


if __name__ == "__main__":
    sys.exit(main())
