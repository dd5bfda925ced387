"""What needs numpy or onnx, in processes of its own, so that the tools start without them.

    model_files.py image OUT.npy HxW            the picture that every program gets
    model_files.py size MODEL.onnx              prints "HxW", "any" or the reason for neither
    model_files.py pool IN.onnx OUT.onnx NODE HxW   an adaptive pool for a picture of this size
    model_files.py mnn IN.onnx OUT.mnn          converts
    model_files.py compare REFERENCE OUTPUTS    prints the largest difference / largest magnitude
    model_files.py converters                   prints versions of the converters as JSON
"""

import importlib.metadata
import json
import pathlib
import sys

import numpy as np


def make_image(out, size):
    height, width = map(int, size.split("x"))
    np.save(out, np.random.default_rng(1).standard_normal((1, 3, height, width), np.float32))


def input_dims(model):
    weights = {tensor.name for tensor in model.graph.initializer}
    entry = [value for value in model.graph.input if value.name not in weights][0]
    return entry.type.tensor_type.shape.dim


def print_size(path):
    import onnx

    dims = [dim.dim_value for dim in input_dims(onnx.load(path, load_external_data=False))]
    if len(dims) != 4 or dims[1] != 3:
        sys.exit(f"the input is {dims}, not one picture of three channels")
    print("any" if 0 in dims[2:] else f"{dims[2]}x{dims[3]}")


def averages(length, parts):
    """[length, parts]: column i averages the samples floor(i*length/parts) .. ceil((i+1)*...)."""
    matrix = np.zeros((length, parts), np.float32)
    for i in range(parts):
        low, high = i * length // parts, -(-(i + 1) * length // parts)
        matrix[low:high, i] = 1 / (high - low)
    return matrix


def shape_of(model, name):
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=False)
    for value in inferred.graph.value_info:
        if value.name == name:
            return [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    sys.exit(f"no shape is known of {name}")


def replace_pool(source, out, name, size):
    """ONNX has adaptive pools only where the output divides the map. Elsewhere the same averages
    are a product of the map's pixels with a constant matrix, which every peer computes."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(source)
    nodes = model.graph.node
    found = [i for i, node in enumerate(nodes) if node.name == name]
    if len(found) != 1 or nodes[found[0]].op_type not in ("AveragePool", "GlobalAveragePool"):
        sys.exit(f"no pool '{name}' in {pathlib.Path(source).name}")
    index = found[0]
    entry, result = nodes[index].input[0], nodes[index].output[0]
    parts = shape_of(model, result)
    input_dims(model)[2].dim_value, input_dims(model)[3].dim_value = map(int, size.split("x"))
    nodes.remove(nodes[index])
    del model.graph.value_info[:]
    _, channels, height, width = shape_of(model, entry)
    matrix = np.kron(averages(height, parts[2]), averages(width, parts[3])).astype(np.float32)
    constants = {"#flat": np.array([1, channels, height * width], np.int64), "#averages": matrix,
                 "#map": np.array([1, channels, parts[2], parts[3]], np.int64)}
    for key, value in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(value, name + key))
    made = [helper.make_node("Reshape", [entry, name + "#flat"], [name + "#pixels"], name + "#0"),
            helper.make_node("MatMul", [name + "#pixels", name + "#averages"], [name + "#cells"],
                             name + "#1"),
            helper.make_node("Reshape", [name + "#cells", name + "#map"], [result], name + "#2")]
    for offset, node in enumerate(made):
        nodes.insert(index + offset, node)
    onnx.save(model, out)


def convert_mnn(source, out):
    # The converter's module itself: MNN's own command and its Python wrapper install a package
    # into whatever Python "pip" belongs to and send statistics.
    import _tools

    _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", source, "--MNNModel", out,
                       "--bizCode", "bench"])


def arrays(path):
    """Of an .npz file or of the .npy files of a folder, the smallest first: names and orders of
    outputs differ from program to program."""
    folder = pathlib.Path(path)
    if folder.is_dir():
        found = [np.load(file) for file in sorted(folder.glob("*.npy"))]
    else:
        with np.load(path) as file:
            found = [file[name] for name in file.files]
    return [array.astype(np.float64).ravel() for array in found]


def difference(ours, theirs):
    scale = max(np.abs(ours).max(), 1e-30)
    value = np.abs(ours - theirs).max() / scale
    return float("inf") if np.isnan(value) else float(value)


def compare(reference, outputs):
    """Each output against the one of its length that is nearest."""
    wanted, given = arrays(reference), arrays(outputs)
    if sorted(map(len, wanted)) != sorted(map(len, given)):
        sys.exit(f"outputs of {sorted(map(len, given))} values, not {sorted(map(len, wanted))}")
    print(max(min(difference(a, b) for b in given if len(b) == len(a)) for a in wanted))


def print_converters():
    versions = {}
    for name in ("MNN", "pnnx", "onnx", "tensorflow-cpu"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    print(json.dumps(versions))


COMMANDS = {"image": make_image, "size": print_size, "pool": replace_pool, "mnn": convert_mnn,
            "compare": compare, "converters": print_converters}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
