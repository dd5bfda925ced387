"""ONNX's own node and operator tests (from the `onnx` package) through rfexec.

A node test is one operator with its inputs and expected outputs. rfexec takes one image and
constants, so every input but one of floats becomes an initialiser. A batch is run image by image
where its images do not see each other; any other input that is no (1, c, h, w) is reshaped by a node
in front. The tests
that pass are listed in onnx_nodes.txt, one name a line, and every one of them must pass; one that
passes and is not in the list is a mistake in the list. All others are refused by rfexec, or fail.

    check_onnx_nodes.py build/rfexec [--refused] [--update]

--update writes the list anew: look at the difference before it is committed.
"""

import argparse
import collections
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.reference import ReferenceEvaluator

import rfexec_cli

LIST = pathlib.Path(__file__).parent / "onnx_nodes.txt"
TOLERANCE = 1e-4  # of the output's largest magnitude; a test's own tolerance when that is wider

# Where ONNX Runtime, against which networks are made, differs from ONNX's reference; rfexec follows
# ONNX Runtime. `agrees_with_onnxruntime` checks that it does.
RUNTIME_DIFFERS = {
    # the reference divides by the unrounded output size (2.4), ONNX Runtime by the rounded one (2)
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
}


KINDS = ["node", "simple", "pytorch-operator", "pytorch-converted"]

# Functions of one element, for which a tensor of any shape is as good as a map. Booleans of rfexec are
# 0 and 1 in float32: an operand of type bool comes out of a Cast.
ELEMENTWISE = {
    "Abs", "Ceil", "Celu", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf",
    "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid",
    "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh", "ThresholdedRelu",
}

# Operators on two or three tensors that broadcast: the first becomes the image, whatever its rank and type.
BROADCAST = {
    "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod",
    "Mul", "Or", "Pow", "Sub", "Where", "Xor",
}

# Operators that are tested on float64 and integers alone: of numbers that float32 holds, or by the tolerance.
AS_FLOAT32 = {"CumSum", "Einsum", "Trilu"}


def map_shape(first, others):
    """The shape of the first operand as a map (1, c, h, w); None when it cannot be one."""
    shape = (1,) * (4 - first.ndim) + first.shape
    if shape[0] == 1:
        return shape
    alike = all(value.shape == first.shape or value.ndim <= 2 for value in others)
    return (1, shape[0] * shape[1]) + shape[2:] if alike else None


def cast_from_float(model, name):
    """The image is float32 where the operator wants bool: a Cast in between."""
    node = model.graph.node[0]
    cast = onnx.helper.make_node("Cast", [name], [name + "_bool"], to=onnx.TensorProto.BOOL)
    for k, value in enumerate(node.input):
        if value == name:
            node.input[k] = name + "_bool"
    model.graph.node.insert(0, cast)


def as_map(model, inputs, expected):
    """One operator that works element by element: its first operand and its output as maps."""
    if len(model.graph.node) != 1 or model.graph.node[0].op_type not in ELEMENTWISE | BROADCAST:
        return inputs, expected
    first, others, kinds = inputs[0], inputs[1:], (np.float32, np.bool_)
    if (any(not isinstance(value, np.ndarray) or value.ndim > 4 for value in inputs) or
            any(value.dtype not in kinds for value in inputs + expected) or
            expected[0].shape != first.shape):
        return inputs, expected
    shape = map_shape(first, others)
    if shape is None:
        return inputs, expected
    info = model.graph.input[0]
    info.CopyFrom(onnx.helper.make_tensor_value_info(info.name, onnx.TensorProto.FLOAT, shape))
    out = model.graph.output[0]
    kind = onnx.helper.np_dtype_to_tensor_dtype(expected[0].dtype)
    out.CopyFrom(onnx.helper.make_tensor_value_info(out.name, kind, shape))
    if first.dtype == np.bool_:
        cast_from_float(model, info.name)
    others = [value.reshape(shape) if value.shape == first.shape else value for value in others]
    return [first.reshape(shape).astype(np.float32)] + others, [expected[0].reshape(shape)]


def as_float32(model, inputs, expected):
    """One operator of AS_FLOAT32: operands of its first one's type, and what it makes, as float32."""
    if len(model.graph.node) != 1 or model.graph.node[0].op_type not in AS_FLOAT32:
        return inputs, expected
    kind = inputs[0].dtype
    if kind == np.float32 or any(value.dtype != kind or value.size == 0 for value in expected):
        return inputs, expected
    several = model.graph.node[0].op_type == "Einsum"
    for k, (info, value) in enumerate(zip(model.graph.input, inputs)):
        if k == 0 or (several and value.dtype == kind):
            info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
            inputs[k] = value.astype(np.float32)
    for info in model.graph.output:
        info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return inputs, [value.astype(np.float32) for value in expected]


def files_of(case):
    """Model, inputs and outputs of a test that lies in a folder."""
    folder = pathlib.Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    data = folder / "test_data_set_0"

    def tensor(path):
        return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))

    inputs = [tensor(data / f"input_{i}.pb") for i in range(len(list(data.glob("input_*.pb"))))]
    return model, inputs, [tensor(data / f"output_{i}.pb") for i in range(len(model.graph.output))]


def image_shape(shape):
    """The shape of the image (1, c, h, w) that has the elements of a tensor of that shape in its order."""
    if len(shape) <= 4 and (len(shape) < 4 or shape[0] == 1):
        return (1,) * (4 - len(shape)) + tuple(shape)
    return (1, int(np.prod(shape[:-2])), shape[-2], shape[-1])


def reshape_in_front(model, image):
    """The image is (1, c, h, w), and a Reshape gives it the shape that the test's first operand has."""
    info, name = model.graph.input[0], model.graph.input[0].name
    shape = numpy_helper.from_array(np.array(image.shape, dtype=np.int64), name + "_shape")
    model.graph.initializer.append(shape)
    info.name = name + "_image"
    del info.type.tensor_type.shape.dim[:]
    for extent in image_shape(image.shape):
        info.type.tensor_type.shape.dim.add().dim_value = extent
    model.graph.node.insert(0, onnx.helper.make_node("Reshape", [info.name, shape.name], [name]))
    return image.reshape(image_shape(image.shape))


def first_image(inputs):
    """Which input becomes the image: a float one of rank four, or else the first float one; None."""
    floats = [k for k, value in enumerate(inputs) if value.dtype == np.float32 and value.size > 0]
    maps = [k for k in floats if inputs[k].ndim == 4]
    return (maps + [k for k in floats if inputs[k].ndim > 0] + [None])[0]


def load(case):
    """The model with all inputs but the image as initialisers, the image, the expected outputs."""
    if case.model is not None:
        model, (inputs, expected) = case.model, case.data_sets[0]
    else:
        model, inputs, expected = files_of(case)
    inputs = [np.asarray(v) if isinstance(v, np.generic) else v for v in inputs]
    expected = [np.asarray(v) if isinstance(v, np.generic) else v for v in expected]
    if all(isinstance(value, np.ndarray) for value in inputs + expected):
        inputs, expected = as_float32(model, list(inputs), list(expected))
    inputs, expected = as_map(model, inputs, expected)
    constants = {value.name for value in model.graph.initializer}
    infos = [info for info in model.graph.input if info.name not in constants]
    if not all(isinstance(value, np.ndarray) and value.dtype != object for value in inputs):
        return None  # sequences, optionals, strings
    at = first_image(inputs)
    if at is None or not all(isinstance(value, np.ndarray) for value in expected):
        return None
    for k, (info, value) in enumerate(zip(infos, inputs)):
        if k != at:
            model.graph.initializer.append(numpy_helper.from_array(value, info.name))
    kept = onnx.ValueInfoProto()
    kept.CopyFrom(infos[at])
    del model.graph.input[:]
    model.graph.input.extend([kept])
    return model, inputs[at], expected


def agrees_with_onnxruntime(model, image, ours):
    """Whether rfexec's outputs are those of ONNX Runtime."""
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    expected = session.run(None, {model.graph.input[0].name: image})
    return all(rfexec_cli.worst_error(ours[info.name], value) <= TOLERANCE
               for info, value in zip(model.graph.output, expected))


def one_image_of(model):
    """The model with a batch of 1."""
    one = onnx.ModelProto()
    one.CopyFrom(model)
    one.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    return one


def runners(model):
    """What evaluates a model: ONNX Runtime, ONNX's own evaluator; each may fail at it in its own way."""
    name = model.graph.input[0].name

    def runtime(image):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        return session.run(None, {name: image})

    return [runtime, lambda image: ReferenceEvaluator(model).run(None, {name: image})]


def is_per_image(model, image, expected):
    """Whether the images of a batch do not see each other: given one after the other they make the
    parts of what is expected of all."""
    if any(value.ndim == 0 or value.shape[0] != image.shape[0] for value in expected):
        return False
    for run in runners(one_image_of(model)):
        try:
            parts = [run(image[i:i + 1]) for i in range(image.shape[0])]
            whole = [np.concatenate(values) for values in zip(*parts)]
            return all(rfexec_cli.worst_error(ours, theirs) <= TOLERANCE
                       for ours, theirs in zip(whole, expected))
        except Exception:  # whatever it raises: not this one, then
            continue
    return False


def images_of(model, image, expected):
    """The model and the images: a batch where they do not see each other; any other array of another
    shape than (1, c, h, w) is reshaped by the model."""
    if image.ndim == 4 and image.shape[0] > 1 and is_per_image(model, image, expected):
        return model, [image]
    if image.ndim != 4 or image.shape[0] != 1:
        image = reshape_in_front(model, image)
    return model, [image]


def check(case, program, folder):
    """('passed' or 'refused' or 'failed', why), or None when the test has no image input."""
    loaded = load(case)
    if loaded is None:
        return None
    model, image, expected = loaded
    model, images = images_of(model, image, expected)
    path = pathlib.Path(folder) / "model.onnx"
    onnx.save(model, path)
    try:
        runs = [rfexec_cli.run(program, path, one, folder)[1] for one in images]
    except rfexec_cli.Refused as refused:
        return "refused", str(refused)
    except RuntimeError as error:
        return "failed", str(error)
    if case.name in RUNTIME_DIFFERS:
        agrees = agrees_with_onnxruntime(model, images[0], runs[0])
        return ("passed", "") if agrees else ("failed", "differs from ONNX Runtime")
    for info, value in zip(model.graph.output, expected):
        if info.name not in runs[0]:
            return "failed", f"output {info.name} is missing"
        ours = np.concatenate([arrays[info.name] for arrays in runs]) if len(runs) > 1 \
            else runs[0][info.name]
        try:
            error = rfexec_cli.worst_error(ours, value)
        except RuntimeError as wrong:
            return "failed", str(wrong)
        if not error <= max(TOLERANCE, case.rtol):
            return "failed", f"output {info.name}: error {error:.3g}"
    return "passed", ""


def run_all(program):
    """{name: (outcome, why)} of all tests with an image."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # numpy's, while onnx computes its expected values
        for case in (case for kind in KINDS for case in load_model_tests(kind=kind)):
            result = check(case, program, folder)
            if result is not None:
                results[case.name] = result
    return results


def compare_with_list(results):
    """What is wrong, one text for each."""
    wanted = LIST.read_text().split()
    wrong = [f"failed: {name}: {why}" for name, (outcome, why) in results.items()
             if outcome == "failed"]
    for name in wanted:
        outcome, why = results.get(name, ("not there", "the onnx package has no such test"))
        if outcome == "refused" or outcome == "not there":
            wrong.append(f"listed, but {outcome}: {name}: {why}")
    for name, (outcome, _) in results.items():
        if outcome == "passed" and name not in wanted:
            wrong.append(f"passes, but is not in {LIST.name}: {name} (add it with --update)")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--refused", action="store_true", help="print refusals one by one")
    parser.add_argument("--update", action="store_true", help="write the list of passing tests")
    args = parser.parse_args()
    results = run_all(args.program)
    if args.update:
        LIST.write_text("".join(f"{name}\n" for name in sorted(results)
                                if results[name][0] == "passed"))
    if args.refused:
        for name, (outcome, why) in results.items():
            if outcome == "refused":
                print(f"refused: {name}: {why}")
    wrong = compare_with_list(results)
    print("\n".join(wrong), end="\n" if wrong else "")
    counts = collections.Counter(outcome for outcome, _ in results.values())
    print(f"ONNX node tests: {counts['passed']} passed, {counts['failed']} failed, "
          f"{counts['refused']} refused; {len(wrong)} not as listed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
