"""Files of rfexec quantize: ranges, weights and biases as numpy makes them of the float32 network, and the same
bytes in ONNX Runtime.

    quantize_cases.py build/rfexec

The float32 network runs in ONNX Runtime with every tensor as an output. For each QuantizeLinear of the file, the
tensor that it reads must have the range that scale and zero point say. Weights must be the nearest integers of the
exported float32 weights times the scale. Then both programs run the quantised file.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

SEEDS = (1, 2, 3)

# built-in, size, options, whether every operator has an integer form in ONNX Runtime, or gives the same bytes in float32
NETWORKS = (
    ("mobilenet_v2:0.25", "96x129", [], True),
    ("mobilenet_v2:0.25", "96x129", ["--type", "int8"], True),
    ("mobilenet_v2:0.25", "96x129", ["--symmetric", "--type", "int8"], True),
    ("mobilenet_v2:0.25", "96x129", ["--method", "percentile", "--one-weight-scale"], True),
    ("resnet18", "97x64", [], True),
    ("resnet18", "97x64", ["--float", "layer2.0.conv1", "--float", "fc"], False),
    ("squeezenet1_1", "96x96", ["--method", "entropy"], True),
    ("densenet121", "64x96", [], True),
    ("mobilenet_v3_small", "65x97", [], True),
    ("yolov8n", "64x96", [], False),
    ("posenet", "97x65", [], True),
    ("unet", "48x64", [], True),
    ("unet", "48x64", ["--type", "int8", "--one-weight-scale"], True),
)
LAYERS = ("Conv", "ConvTranspose", "Gemm")  # with weights of bytes


def run(rfexec: str, *words: object) -> str:
    done = subprocess.run([rfexec, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"rfexec {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def session(path: pathlib.Path, key: str = "") -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if key:
        options.add_session_config_entry(key, "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def ranges_of(path: pathlib.Path, images: list[np.ndarray]) -> dict[str, tuple[float, float]]:
    """The smallest and largest value of every float32 tensor of a network, over the images."""
    model = onnx.load(path)
    every = [o for node in model.graph.node for o in node.output if o]
    known = {o.name for o in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in every if name not in known)
    wide = path.with_suffix(".all.onnx")
    onnx.save(model, wide)
    net = session(wide)
    found: dict[str, tuple[float, float]] = {}
    for image in images:
        for out, value in zip(net.get_outputs(), net.run(None, {"input": image})):
            lo, hi = found.get(out.name, (np.inf, -np.inf))
            found[out.name] = (min(lo, float(value.min())), max(hi, float(value.max())))
        lo, hi = found.get("input", (np.inf, -np.inf))
        found["input"] = (min(lo, float(image.min())), max(hi, float(image.max())))
    return found


def check_ranges(model: onnx.ModelProto, ranges: dict[str, tuple[float, float]]) -> list[str]:
    """Every QuantizeLinear must express the range of the tensor that it stands for. A tensor's float32 name is that
    of the DequantizeLinear behind it."""
    data = constants(model)
    behind = {n.input[0]: n.output[0] for n in model.graph.node if n.op_type == "DequantizeLinear"}
    moved = {n.output[0] for n in model.graph.node if n.op_type in ("MaxPool", "Flatten", "Reshape")}
    wrong, checked = [], 0
    for node in model.graph.node:
        if node.op_type != "QuantizeLinear" or node.input[0] in moved:
            continue  # moved elements keep the scale that they had
        name = behind[node.output[0]].removesuffix("#image")
        if name not in ranges:
            continue
        scale, zero = float(data[node.input[1]]), int(data[node.input[2]])
        kind = np.iinfo(data[node.input[2]].dtype)
        lo, hi = min(ranges[name][0], 0.0), max(ranges[name][1], 0.0)
        made = ((kind.min - zero) * scale, (kind.max - zero) * scale)
        checked += 1
        if abs(made[0] - lo) > 0.51 * scale + 1e-5 or abs(made[1] - hi) > 0.51 * scale + 1e-5:
            wrong.append(f"{name}: values {lo} ... {hi}, integers {made[0]} ... {made[1]}")
    if checked < 10:
        wrong.append(f"only {checked} tensors could be compared")
    return wrong


def check_weights(model: onnx.ModelProto, exact: onnx.ModelProto) -> list[str]:
    """Where the float32 file has no batch norm between, weights are its weights, rounded to their scale."""
    data, floats = constants(model), constants(exact)
    normed = {n.input[0] for n in exact.graph.node if n.op_type == "BatchNormalization"}
    layers = {n.name: n for n in exact.graph.node if n.op_type in LAYERS}
    wrong = []
    for node in model.graph.node:
        if node.op_type not in LAYERS or node.input[1] in data:
            continue
        maker = next(n for n in model.graph.node if n.output[0] == node.input[1])
        weights, scales = data[maker.input[0]], data[maker.input[1]]
        axis = next(a.i for a in maker.attribute if a.name == "axis")
        shape = [-1 if k == axis else 1 for k in range(weights.ndim)]
        if np.abs(weights.astype(int)).max() > 127 or not (scales > 0).all():
            wrong.append(f"{node.name}: weights or scales out of range")
        layer = layers[node.name]
        if layer.output[0] in normed:
            continue
        real = floats[layer.input[1]]
        error = np.abs(weights * scales.reshape(shape) - real)
        if (error > 0.5001 * scales.reshape(shape)).any():
            wrong.append(f"{node.name}: weights are not the nearest integers")
        if len(layer.input) > 2:
            by = next(n for n in model.graph.node if n.output[0] == node.input[2])
            bias, unit = data[by.input[0]], data[by.input[1]]
            if (np.abs(bias * unit.astype(float) - floats[layer.input[2]]) > 0.5001 * unit + 1e-7).any():
                wrong.append(f"{node.name}: biases are not the nearest integers")
    return wrong


def check(rfexec: str, folder: pathlib.Path, net: str, size: str, options: list[str], integer: bool) -> list[str]:
    listed = folder / "list.txt"
    listed.write_text("".join(f"synthetic:{size}:{k}\n" for k in SEEDS))
    file, exact = folder / "bytes.onnx", folder / "float.onnx"
    run(rfexec, "quantize", net, "--images", listed, "-o", file, *options)
    run(rfexec, "export", net, "--size", size, "-o", exact)
    images = []
    for k in (*SEEDS, 77):
        run(rfexec, "run", net, f"synthetic:{size}:{k}", "--keep", "input", "-o", folder / f"x{k}.npy")
        images.append(np.load(folder / f"x{k}.input.npy"))
    model, wrong = onnx.load(file), []
    onnx.checker.check_model(model)
    if not options:
        wrong += check_ranges(model, ranges_of(exact, images[:-1]))
    wrong += check_weights(model, onnx.load(exact))
    key = "session.qdqisint8allowed" if "int8" in options else "session.x64quantprecision"
    theirs = session(file, key).run(None, {"input": images[-1]})
    names = [o.name for o in model.graph.output]
    run(rfexec, "run", file, folder / "x77.input.npy", "-o", folder / "y.npy")
    for name, value in zip(names, theirs):
        ours = np.load(folder / ("y.npy" if len(names) == 1 else f"y.{name}.npy"))
        apart = float(np.abs(ours - value).max() / np.abs(value).max())
        if integer and not np.array_equal(ours, value):
            wrong.append(f"{name}: {(ours != value).sum()} of {value.size} differ from ONNX Runtime's")
        elif apart > 0.02:
            wrong.append(f"{name}: {apart:.4f} of the largest value apart from ONNX Runtime's")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rfexec")
    args = parser.parse_args()
    failed = 0
    for net, size, options, integer in NETWORKS:
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(args.rfexec, pathlib.Path(folder), net, size, options, integer)
        print(f"{net} {size} {' '.join(options)}: {'; '.join(wrong) if wrong else 'ok'}", flush=True)
        failed += bool(wrong)
    print(f"{len(NETWORKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
