"""ONNX's own node tests (from the `onnx` package) through rfexec.

A node test is one operator with its inputs and expected outputs. rfexec takes one image and
constants, so every input but the first four-dimensional float one becomes an initialiser. What
rfexec refuses is listed with its reason and is not counted as passed.

    check_onnx_nodes.py build/rfexec [--list]
"""

import argparse
import collections
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import rfexec_cli

OPS = {
    "Add", "AveragePool", "BatchNormalization", "Cast", "Clip", "Concat", "Constant",
    "ConstantOfShape", "Conv", "ConvTranspose", "DepthToSpace", "Div", "Dropout", "Exp", "Flatten",
    "Gather", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish", "Identity",
    "LRN", "LeakyRelu", "MatMul", "MaxPool", "Mul", "PRelu", "Pad", "ReduceMean", "Relu",
    "Reshape", "Resize", "Sigmoid", "Slice", "Softmax", "Split", "Squeeze", "Sub", "Sum", "Swish",
    "Tanh", "Transpose", "Unsqueeze", "Upsample",
}
TOLERANCE = 1e-4


def load(case):
    """The model with all inputs but the image as initialisers, the image, the expected outputs."""
    folder = pathlib.Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    data = folder / "test_data_set_0"

    def tensor(path):
        return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))

    inputs = [tensor(data / f"input_{i}.pb") for i in range(len(model.graph.input))]
    expected = [tensor(data / f"output_{i}.pb") for i in range(len(model.graph.output))]
    image = None
    kept = []
    for info, value in zip(list(model.graph.input), inputs):
        if image is None and value.ndim == 4 and value.dtype == np.float32:
            image = value
            kept.append(info)
        else:
            model.graph.initializer.append(numpy_helper.from_array(value, info.name))
    if image is None:
        return None
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model, image, expected


def check(case, program, folder):
    """'passed', ('refused', why) or ('failed', why) or None when the test has no image input."""
    try:
        loaded = load(case)
    except (TypeError, ValueError, FileNotFoundError):
        return None  # sequences, optionals, strings: not images
    if loaded is None:
        return None
    model, image, expected = loaded
    if not any(node.op_type in OPS for node in model.graph.node):
        return None
    path = pathlib.Path(folder) / "model.onnx"
    onnx.save(model, path)
    try:
        _, arrays = rfexec_cli.run(program, path, image, folder)
    except rfexec_cli.Refused as refused:
        return "refused", str(refused)
    except RuntimeError as error:
        return "failed", str(error)
    for info, value in zip(model.graph.output, expected):
        if info.name not in arrays:
            return "failed", f"output {info.name} is missing"
        try:
            error = rfexec_cli.worst_error(arrays[info.name], value)
        except RuntimeError as wrong:
            return "failed", str(wrong)
        if not error <= TOLERANCE:
            return "failed", f"output {info.name}: error {error:.3g}"
    return "passed", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--list", action="store_true", help="print refusals one by one")
    parser.add_argument("--least", type=int, default=1, help="fail with fewer passed tests")
    args = parser.parse_args()
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in load_model_tests(kind="node"):
            result = check(case, args.program, folder)
            if result is None:
                continue
            counts[result[0]] += 1
            if result[0] == "failed" or (args.list and result[0] == "refused"):
                print(f"{result[0]}: {case.name}: {result[1]}")
    print(f"ONNX node tests: {counts['passed']} passed, {counts['failed']} failed, "
          f"{counts['refused']} refused")
    return 1 if counts["failed"] or counts["passed"] < args.least else 0


if __name__ == "__main__":
    sys.exit(main())
