"""Random Resize nodes through rfexec and through the reference evaluator of the `onnx` package.

A case draws mode, antialias, exclude_outside, coordinate_transformation_mode, nearest_mode, cubic_coeff_a,
axes, keep_aspect_ratio_policy, scales or sizes, and the opset (11 to 24). Nodes of opset 10, which the
evaluator does not know, are compared with ONNX Runtime. What rfexec does not support must be refused in
words (`refusals`).

    resize_cases.py build/rfexec [--cases 200] [--seed 1]      RFX_CASES sets the number too

Where the evaluator differs from the standard's text, and ONNX Runtime follows the text, this script changes
the evaluator (`follow_the_text`):
  - align_corners and pytorch_half_pixel speak of length_resized, the number of pixels; the evaluator takes
    scale * length_original, which is not whole where the scale is given;
  - pytorch_half_pixel: a single pixel is that at position 0; the evaluator takes -0.5, which has another
    kernel with cubic, exclude_outside or antialias;
  - a position that is whole but for the rounding of float64 (26.000000000000004 of 53 columns that become
    19): the evaluator takes weights of one pixel and values of the next.
Scales whose product with the length is whole in float32 and below it in float64 (0.7 of 10) make a pixel
more in ONNX Runtime than in the evaluator: one fixed case is compared with ONNX Runtime, no random one.
Positions within TIE of a boundary of nearest_mode are rounded in float32 by rfexec and ONNX Runtime and in
float64 by the evaluator: these rows and columns are not compared.
"""

import argparse
import os
import random
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops import op_resize

import rfexec_cli

TOLERANCE = 1e-5  # of the output's largest magnitude
TIE = 1e-5
GROUP = 8  # cases in a model: outputs of one input
COORDS = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]

evaluators_own = op_resize._compute_x_ori


def follow_the_text(mode, y, scale, in_length, out_length, out_whole, roi):
    """Where output positions lie on the input, by the standard's text; see the head of this file."""
    if mode in ("align_corners", "pytorch_half_pixel"):
        out_length = float(out_whole)
    if mode == "pytorch_half_pixel" and out_whole == 1:
        return np.zeros(1), None
    at, outside = evaluators_own(mode, y, scale, in_length, out_length, out_whole, roi)
    return np.where(np.abs(at - np.round(at)) < 1e-9, np.round(at), at), outside


op_resize._compute_x_ori = follow_the_text


def draw_scale(draw, length):
    """A scale for which float32 and float64 agree on the size."""
    while True:
        scale = np.float32(draw.choice([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, draw.uniform(0.15, 3.2)]))
        sizes = int(scale * np.float32(length)), int(float(scale) * length)
        if sizes[0] == sizes[1] >= 1:
            return scale


def draw_case(draw, opset, shape):
    """Attributes of a node, and its inputs scales and sizes, one of which is None."""
    attrs = {"mode": draw.choice(["nearest", "linear", "cubic"])}
    attrs["coordinate_transformation_mode"] = draw.choice(COORDS[:4] if opset < 19 else COORDS)
    if attrs["mode"] == "nearest":
        attrs["nearest_mode"] = draw.choice(NEAREST)
    else:
        attrs["exclude_outside"] = draw.randint(0, 1)
        if opset >= 18:
            attrs["antialias"] = draw.randint(0, 1)
    if attrs["mode"] == "cubic":
        attrs["cubic_coeff_a"] = draw.choice([-0.75, -0.5, -0.6])
    axes = [0, 1, 2, 3]
    if opset >= 18 and draw.random() < 0.7:
        axes = draw.choice([[2, 3], [3, 2], [2], [3], [-2, -1], [-1], [1, 2, 3], [3, 0, 2]])
        attrs["axes"] = axes
    space = [axis % 4 for axis in axes]
    if draw.random() < 0.5:
        scales = [draw_scale(draw, shape[a]) if a > 1 else np.float32(1) for a in space]
        return attrs, np.array(scales, np.float32), None
    if opset >= 18 and min(space) > 1 and draw.random() < 0.5:
        attrs["keep_aspect_ratio_policy"] = draw.choice(["stretch", "not_larger", "not_smaller"])
    sizes = [draw.choice([shape[a], draw.randint(1, 3 * shape[a])]) if a > 1 else shape[a] for a in space]
    return attrs, None, np.array(sizes, np.int64)


def make_model(opset, shape, cases):
    """A model with an output y0, y1, ... of each case."""
    nodes, constants = [], []

    def constant(value, name):
        if value is None:
            return ""
        constants.append(numpy_helper.from_array(value, name))
        return name

    for k, (attrs, scales, sizes) in enumerate(cases):
        inputs = ["x", "", constant(scales, f"scales{k}"), constant(sizes, f"sizes{k}")]
        if opset < 11:
            inputs = ["x", inputs[2]]
        while inputs[-1] == "":
            inputs.pop()
        nodes.append(helper.make_node("Resize", inputs, [f"y{k}"], **attrs))
    graph = helper.make_graph(
        nodes, "resize", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, None) for k in range(len(cases))], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def of_evaluator(case):
    """The case with its axes counted from the first, as the evaluator wants them."""
    attrs = dict(case[0])
    if "axes" in attrs:
        attrs["axes"] = [axis % 4 for axis in attrs["axes"]]
    return (attrs,) + case[1:]


def is_clear(attrs, scale, length, out):
    """For each output position whether nearest_mode rounds it in float32 as in float64."""
    at, _ = follow_the_text(attrs["coordinate_transformation_mode"], np.arange(out, dtype=np.float64), scale,
                            length, scale * length, out, None)
    boundary = 0.5 if attrs["nearest_mode"].startswith("round") else 0.0
    distance = (at - boundary) - np.round(at - boundary)
    exact = distance == 0  # of binary fractions: a tie for both
    return (np.abs(distance) > TIE) | (exact & (float(scale) in (0.25, 0.5, 1.0, 2.0)))


def compare(case, shape, ours, expected):
    """The worst error relative to the largest magnitude."""
    attrs, scales, sizes = case
    if ours.shape != expected.shape:
        return f"shape {ours.shape}, expected {expected.shape}"
    if attrs["mode"] == "nearest":
        axes = [a % 4 for a in attrs.get("axes", range(4))]
        for axis in (2, 3):
            out, scale = expected.shape[axis], expected.shape[axis] / shape[axis]
            if scales is not None and axis in axes:
                scale = float(scales[axes.index(axis)])
            elif attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch" and axis in axes:
                ratios = [int(size) / shape[a] for size, a in zip(sizes, axes)]
                scale = min(ratios) if attrs["keep_aspect_ratio_policy"] == "not_larger" else max(ratios)
            keep = is_clear(attrs, scale, shape[axis], out)
            ours, expected = ours.compress(keep, axis), expected.compress(keep, axis)
    worst = rfexec_cli.worst_error(ours, expected)
    return None if worst <= TOLERANCE else f"differs by {worst:.2g} of the largest value"


def check_group(program, work, draw):
    """Compares a model of random cases; returns what failed."""
    opset = draw.choice([11, 13, 18, 19, 21, 23, 24])
    shape = [1, draw.randint(1, 4), draw.randint(1, 24), draw.randint(1, 24)]
    cases = [draw_case(draw, opset, shape) for _ in range(GROUP)]
    model = make_model(opset, shape, cases)
    image = np.random.default_rng(draw.getrandbits(32)).standard_normal(shape).astype(np.float32)
    expected = ReferenceEvaluator(make_model(opset, shape, [of_evaluator(c) for c in cases])).run(None, {"x": image})
    if any(value.size == 0 for value in expected):
        return check_group(program, work, draw)
    onnx.save(model, work + "/case.onnx")
    try:
        _, ours = rfexec_cli.run(program, work + "/case.onnx", image, work)
    except (rfexec_cli.Refused, RuntimeError) as error:
        return [f"opset {opset}, {shape}: {error} {cases}"]
    failed = []
    for k, case in enumerate(cases):
        text = compare(case, shape, ours[f"y{k}"], expected[k])
        if text is not None:
            failed.append(f"opset {opset}, input {shape}, {case}: {text}")
    return failed


def check_with_runtime(program, work, opset, shape, case):
    """Compares one case with ONNX Runtime."""
    model = make_model(opset, shape, [case])
    image = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    onnx.save(model, work + "/case.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": image})[0]
    _, ours = rfexec_cli.run(program, work + "/case.onnx", image, work)
    if ours["y0"].shape == expected.shape and rfexec_cli.worst_error(ours["y0"], expected) <= TOLERANCE:
        return []
    return [f"opset {opset}, input {shape}, {case}: not what ONNX Runtime makes"]


def fixed_cases(program, work, draw):
    """What the evaluator cannot answer for."""
    failed = check_with_runtime(program, work, 19, [1, 1, 1, 10],
                                ({"mode": "linear"}, np.array([1, 1, 1, 0.7], np.float32), None))
    for k in range(12):
        shape = [1, 2, draw.randint(4, 20), draw.randint(4, 20)]
        scales = np.array([1, 1, draw_scale(draw, shape[2]), draw_scale(draw, shape[3])], np.float32)
        case = ({"mode": ["nearest", "linear"][k % 2]}, scales, None)
        failed += check_with_runtime(program, work, 10, shape, case)
    return failed


def refusals(program, work):
    """What must be refused, and a word of the refusal."""
    half = np.array([1, 1, 0.5, 0.5], np.float32)
    cases = [
        ({"mode": "nearest", "antialias": 1}, half, None, "antialias"),
        ({"mode": "nearest", "exclude_outside": 1}, half, None, "exclude_outside"),
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, half, None, "tf_crop_and_resize"),
        ({"mode": "linear"}, np.array([1, 0.5, 1, 1], np.float32), None, "axis 1"),
        ({"mode": "linear"}, None, np.array([1, 5, 8, 8], np.int64), "axis 1"),
        ({"mode": "linear", "axes": [2, 2]}, None, np.array([5, 5], np.int64), "twice"),
        ({"mode": "linear", "keep_aspect_ratio_policy": "not_larger"}, None, np.array([1, 4, 4, 4], np.int64),
         "axis 1"),
        ({"mode": "linear", "keep_aspect_ratio_policy": "fit"}, None, np.array([1, 4, 4, 4], np.int64), "fit"),
        ({"mode": "sinc"}, half, None, "sinc"),
        ({"nearest_mode": "odd"}, half, None, "odd"),
    ]
    failed = []
    for attrs, scales, sizes, word in cases:
        onnx.save(make_model(19, [1, 4, 8, 8], [(attrs, scales, sizes)]), work + "/case.onnx")
        try:
            rfexec_cli.run(program, work + "/case.onnx", np.zeros((1, 4, 8, 8)), work)
            failed.append(f"{attrs} is not refused")
        except rfexec_cli.Refused as refused:
            if word not in str(refused):
                failed.append(f"{attrs}: refused without '{word}': {refused}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=int(os.environ.get("RFX_CASES", "200")))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    groups = (options.cases + GROUP - 1) // GROUP
    with tempfile.TemporaryDirectory() as work:
        failed = refusals(options.program, work) + fixed_cases(options.program, work, draw)
        for _ in range(groups):
            failed += check_group(options.program, work, draw)
    for text in failed:
        print(text)
    print(f"Resize: {groups * GROUP} random cases (seed {options.seed}), {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
