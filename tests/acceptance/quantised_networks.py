#!/usr/bin/env python3
"""Whole networks in 8 bits, by onnxruntime.quantization: rfexec beside ONNX Runtime's integer kernels, every byte.

    quantised_networks.py [--folder DIR] [--sizes 224x224,513x769,1024x1024] [--forms qdq,qoperator] [--types u8,s8]
                          PROGRAM [NAME ...]

Networks of torchvision with random weights, and rfexec's own U-Net: with its transposed convolutions, and with nearest
upsampling and a 1x1 convolution in their place (unet_nearest). Each is quantised per channel, with the ranges of three
seeded random images of 224x224, in QDQ and QOperator form, to uint8 and int8. Then
1. at the first size every 8-bit tensor of the network is compared, and its output;
2. at the second size the output, computed in 3x2 tiles (the whole network in bands where it does not tile);
3. at the third size the output, computed in twice the least memory that the planner finds.
Sizes of the U-Nets are rounded up to multiples of 16.
A network with operators that ONNX Runtime computes in float32 may differ there. For each ConvTranspose of a network
whose tensors differ, both programs get the same bytes, and the script counts whose bytes are not those of the exact
sum in float64, rounded once.

The session options are those of tests/oracle/quantised_models.py. ONNX Runtime's optimiser WeightBiasQuantization is
off: it rounds float weights of a ConvTranspose to 8 bits, which the file does not say. Needs x86-64, torch,
torchvision, onnx and onnxruntime (tests/acceptance/exports.txt): it is run by hand. With --folder the files stay there
for the next run.
The exit code is 1 if a byte differs in a network of which all operators have integer kernels, or more bytes than
SHARE in another one.
"""

import argparse
import collections
import importlib.util
import json
import logging
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
NEEDED = ("torch", "torchvision", "onnx", "onnxruntime")
NETWORKS = ("mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "resnet18", "resnet50", "densenet121",
            "inception_v3", "shufflenet_v2_x1_0", "efficientnet_b0", "squeezenet1_1", "unet", "unet_nearest")
CALIBRATION = 224  # rows and columns of the images that give the ranges
# Float operators whose rounding depends on the order of a sum. All others compute each value by itself.
SUMS = {"ConvTranspose", "ReduceMean", "Softmax"}
SHARE = 0.05  # of the bytes behind such a sum may differ


def torchvision_network(folder, name):
    """Exports a network of torchvision with random weights; returns the path."""
    import torch
    from export_torchvision import export, import_models, randomise_batch_norms

    path = folder / f"{name}.float.onnx"
    models, _library = import_models()
    torch.manual_seed(1)
    more = {"init_weights": True} if name.startswith("inception") else {}
    net = getattr(models, name)(weights=None, **more).eval()
    with torch.no_grad():
        randomise_batch_norms(net)
        export(net, str(path), False, True)
    return path


def own_network(program, folder, name):
    """Exports rfexec's U-Net; unet_nearest gets a Resize and a Conv in the place of each ConvTranspose."""
    import numpy
    import onnx
    from onnx import helper, numpy_helper

    path = folder / f"{name}.float.onnx"
    subprocess.run([program, "export", "unet", "-o", str(path)], check=True, stdout=subprocess.DEVNULL)
    if name == "unet":
        return path
    model = onnx.load(path)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    model.graph.initializer.append(numpy_helper.from_array(numpy.array([1, 1, 2, 2], numpy.float32), "twice"))
    nodes = []
    for node in model.graph.node:
        if node.op_type != "ConvTranspose":
            nodes.append(node)
            continue
        weight = weights[node.input[1]]
        values = numpy_helper.to_array(weight)[:, :, :1, :1].transpose(1, 0, 2, 3)
        weight.CopyFrom(numpy_helper.from_array(numpy.ascontiguousarray(values), weight.name))
        larger = f"{node.output[0]}_larger"
        nodes.append(helper.make_node("Resize", [node.input[0], "", "twice"], [larger], f"{node.name}_resize",
                                      mode="nearest", coordinate_transformation_mode="asymmetric",
                                      nearest_mode="floor"))
        nodes.append(helper.make_node("Conv", [larger, *node.input[1:]], node.output, node.name))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, path)
    return path


def images(name, count=3):
    """A reader of seeded random images for the ranges."""
    import numpy
    from onnxruntime import quantization

    class Images(quantization.CalibrationDataReader):
        def __init__(self):
            random = numpy.random.default_rng(11)
            self.left = [random.standard_normal((1, 3, CALIBRATION, CALIBRATION)).astype(numpy.float32)
                         for _ in range(count)]

        def get_next(self):
            return {name: self.left.pop()} if self.left else None

    return Images()


def quantised(program, folder, name, form, kind):
    """The path of the network in this form and type; made unless it is there."""
    import onnx
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    path, prepared = folder / f"{name}.{form}.{kind}.onnx", folder / f"{name}.prepared.onnx"
    if path.exists():
        return path
    if not prepared.exists():
        source = own_network(program, folder, name) if name.startswith("unet") else torchvision_network(folder, name)
        quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        source.unlink()
    activations = quantization.QuantType.QUInt8 if kind == "u8" else quantization.QuantType.QInt8
    quantization.quantize_static(
        str(prepared), str(path), images(onnx.load(prepared).graph.input[0].name),
        quant_format=quantization.QuantFormat.QDQ if form == "qdq" else quantization.QuantFormat.QOperator,
        per_channel=True, activation_type=activations, weight_type=quantization.QuantType.QInt8)
    return path


def sized(path, rows, columns):
    """The model for images of this size."""
    import onnx

    model = onnx.load(path)
    for axis, length in ((0, 1), (2, rows), (3, columns)):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = length
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


def with_all_bytes(model):
    """The model with each tensor of bytes as an output; returns the names of these outputs."""
    import onnx

    types = {value.name: value.data_type for value in model.graph.initializer}
    there = {value.name for value in model.graph.output}
    names = []
    for node in model.graph.node:
        of_bytes = node.op_type == "QuantizeLinear" or node.op_type.startswith("QLinear") or node.op_type == "QGemm"
        zero = {"QLinearConv": 7, "QLinearConcat": 1, "QGemm": 8}.get(node.op_type, -1)
        kind = types.get(node.input[zero])
        if of_bytes and kind in (onnx.TensorProto.UINT8, onnx.TensorProto.INT8) and node.output[0] not in there:
            names.append(node.output[0])
            model.graph.output.append(onnx.helper.make_tensor_value_info(names[-1], kind, None))
    return names


def theirs(model, image, kind, folder):
    """Outputs of ONNX Runtime by name, and the float operators that it ran, with their numbers."""
    import onnx
    import onnxruntime
    import quantised_models

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.add_session_config_entry(
        "session.x64quantprecision" if kind == "u8" else "session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"],
                                           disabled_optimizers=["WeightBiasQuantization"])
    names = [value.name for value in session.get_outputs()]
    left = collections.Counter(
        node.op_type for node in onnx.load(folder / "optimised.onnx").graph.node
        if node.op_type in quantised_models.FLOAT_OPERATORS | quantised_models.ELEMENTWISE.keys() | SUMS)
    return dict(zip(names, session.run(names, {session.get_inputs()[0].name: image}))), left


def count_differences(ours, expected, names):
    """(bytes that differ, bytes, largest difference, first tensor that differs) of the tensors `names`."""
    import numpy

    different = total = worst = 0
    first = None
    for name in names:
        a, b = ours[name].astype(numpy.float64), expected[name].astype(numpy.float64)
        wrong = int(numpy.count_nonzero(a != b))
        first = first or (name if wrong else None)
        different, total = different + wrong, total + a.size
        worst = max(worst, float(numpy.abs(a - b).max()))
    return different, total, worst, first


def exact_transposed(node, constants, x, scale, to, zero):
    """The bytes of a ConvTranspose of dequantised x in float64, rounded once; None of another form."""
    import numpy
    from onnx import helper

    attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    w, bias = constants
    if list(attrs.get("strides", [1, 1])) != list(w.shape[2:]) or any(attrs.get("pads", [0])):
        return None
    rows, columns = w.shape[2:]
    _, _, h, wide = x.shape
    y = numpy.einsum("nchw,coij->nohiwj", x * scale, w).reshape(1, w.shape[1], h * rows, wide * columns)
    y += bias.reshape(-1, 1, 1)
    ends = numpy.iinfo(zero.dtype)
    return numpy.clip(numpy.rint(y / float(to)) + float(zero), ends.min, ends.max)


def nearest_of(program, model, expected, kind, folder):
    """Lines for each ConvTranspose: both programs compute it from ONNX Runtime's bytes."""
    import numpy
    import onnx
    from onnx import helper, numpy_helper
    from rfexec_library import Library

    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    makers = {name: node for node in model.graph.node for name in node.output}
    readers = collections.defaultdict(list)
    for node in model.graph.node:
        for name in node.input:
            readers[name].append(node)

    def value(name):
        """A constant, dequantised if the file has it in bytes."""
        if name in constants:
            return constants[name].astype(numpy.float64)
        node = makers[name]
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        q, scale, zero = [constants[part] for part in node.input]
        shape = [-1 if scale.size > 1 and i == axis % q.ndim else 1 for i in range(q.ndim)]
        return (q.astype(numpy.float64) - zero.astype(numpy.float64).reshape(shape)) * \
            scale.astype(numpy.float64).reshape(shape)

    for node in model.graph.node:
        if node.op_type != "ConvTranspose":
            continue
        before, after = makers[node.input[0]], readers[node.output[0]][0]
        name, scale, zero = before.input[0], constants[before.input[1]], constants[before.input[2]]
        x = expected[name].astype(numpy.float64) - float(zero)
        to, to_zero = constants[after.input[1]], constants[after.input[2]]
        exact = exact_transposed(node, [value(part) for part in node.input[1:3]], x, float(scale), to, to_zero)
        if exact is None:
            continue
        image = (x.astype(numpy.float32) * scale).astype(numpy.float32)
        needed = {part for part in (*before.input[1:], *after.input[1:])}
        nodes = [helper.make_node("QuantizeLinear", ["x", *before.input[1:]], [name]), before]
        for part in node.input[1:3]:
            if part in constants:
                needed.add(part)
            else:
                nodes.append(makers[part])
                needed |= set(makers[part].input)
        graph = helper.make_graph(
            nodes + [node, after], "one", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, image.shape)],
            [helper.make_tensor_value_info(after.output[0], helper.np_dtype_to_tensor_dtype(to_zero.dtype), None)],
            [tensor for tensor in model.graph.initializer if tensor.name in needed])
        one = helper.make_model(graph, ir_version=model.ir_version, opset_imports=model.opset_import)
        mine = Library(program).run(one.SerializeToString(), image)[after.output[0]]
        other, _ = theirs(one, image, kind, folder)
        other = other[after.output[0]]
        print(f"    {node.name}: of {exact.size} bytes {numpy.count_nonzero(mine != other)} differ; not the exact sum "
              f"rounded once: {numpy.count_nonzero(mine != exact)} of rfexec, "
              f"{numpy.count_nonzero(other != exact)} of ONNX Runtime", flush=True)


def small_budget(program, path, array):
    """The option of twice the least memory that the planner finds, as it says itself. In too little memory to load
    the network it says nothing."""
    for asked in ("1MiB", "64MiB", "256MiB", "1GiB"):
        done = subprocess.run([program, "run", str(path), str(array), "--memory", asked, "--json", "-o", "unused.npy"],
                              capture_output=True, text=True, check=False, cwd=array.parent)
        if done.returncode == 0:
            return ["--memory", asked]
        if done.stdout:
            return ["--memory", str(2 * json.loads(done.stdout)["smallest_bytes"])]
    raise RuntimeError(done.stderr)


def run_planned(program, path, image, folder, which):
    """Outputs of the program under the plan of the second or third size, and the plan's words."""
    import numpy
    import rfexec_cli

    numpy.save(folder / "input.npy", image)
    options = [] if which == 0 else ["--tiles", "3x2"] if which == 1 else \
        small_budget(program, path, folder / "input.npy")
    try:
        return rfexec_cli.run(program, path, image, folder, options)[1], " ".join(options)
    except (rfexec_cli.Refused, RuntimeError):
        if which != 1:
            raise
        return rfexec_cli.run(program, path, image, folder, ["--bands", "3"])[1], "--bands 3"


def rounded(path, size):
    """The size that a network takes."""
    return [-(-length // 16) * 16 for length in size] if path.stem.startswith("unet") else size


def check(program, path, kind, sizes, folder):
    """Compares one network; prints its lines and returns whether it is as it should be."""
    import numpy
    import onnx
    from rfexec_library import Library

    good = True
    for which, size in enumerate(sizes):
        rows, columns = rounded(path, size)
        start = time.monotonic()
        model = sized(path, rows, columns)
        image = numpy.random.default_rng(rows * 7919 + columns).standard_normal((1, 3, rows, columns))
        image = image.astype(numpy.float32)
        outputs = [value.name for value in model.graph.output]
        names = (with_all_bytes(model) if which == 0 else []) + outputs
        expected, left = theirs(model, image, kind, folder)
        if which == 0:
            ours, words = Library(program).run(model.SerializeToString(), image), f"{len(names)} tensors"
        else:
            onnx.save(model, folder / "sized.onnx")
            ours, words = run_planned(program, folder / "sized.onnx", image, folder, which)
        different, total, worst, first = count_differences(ours, expected, names)
        sums = sorted(SUMS & left.keys())
        good = good and (different <= SHARE * total if sums else different == 0)
        floats = ", ".join(f"{count} {name}" for name, count in sorted(left.items()))
        print(f"{path.stem} {rows}x{columns} {words}: {different} of {total} differ"
              f"{f' (by up to {worst:g}, first {first})' if different else ''}"
              f"{f'; float32 in ONNX Runtime: {floats}' if floats and which == 0 else ''}, "
              f"{time.monotonic() - start:.0f} s", flush=True)
        if which == 0 and different and "ConvTranspose" in left:
            nearest_of(program, model, expected, kind, folder)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="where the files are, and stay")
    parser.add_argument("--sizes", default="224x224,513x769,1024x1024")
    parser.add_argument("--forms", default="qdq,qoperator")
    parser.add_argument("--types", default="u8,s8")
    parser.add_argument("program")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    lacks = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacks or platform.machine() not in ("x86_64", "AMD64"):
        print(f"NOT compared: {', '.join(lacks)} not installed (tests/acceptance/exports.txt)" if lacks else
              "NOT compared: the integer kernels of ONNX Runtime are others on this processor")
        return 77
    sys.path[:0] = [str(TOP / "tests/oracle"), str(TOP / "tools/scripts")]
    logging.disable(logging.WARNING)
    sizes = [tuple(int(number) for number in size.split("x")) for size in args.sizes.split(",")]
    missed = compared = 0
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(args.folder or work)
        folder.mkdir(parents=True, exist_ok=True)
        args.program = str(pathlib.Path(args.program).resolve())
        for name in args.names or NETWORKS:
            for form in args.forms.split(","):
                for kind in args.types.split(","):
                    path = quantised(args.program, folder, name, form, kind)
                    compared += 1
                    try:
                        missed += not check(args.program, path, kind, sizes, pathlib.Path(work))
                    except Exception as error:  # the other networks are compared all the same
                        print(f"{path.stem}: {error}", flush=True)
                        missed += 1
    print(f"quantised networks: {compared} compared, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
