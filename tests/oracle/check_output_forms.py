"""Outputs of every shape, order and type that exporters write, through rfexec and ONNX Runtime.

    check_output_forms.py build/rfexec [NAME ...]

Maps without their axis of channels or of images, with channels last, and what works element by
element behind them; labels, masks and pictures cast to integers. Inputs and weights are small whole
numbers, so that every value is exact: the .npy must have the shape, the type and the values of ONNX
Runtime, untiled, tiled, within the smallest budget and put together from parts; a TIFF, a PNG and a
Zarr array must have the map.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import tifffile
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

ROWS, COLUMNS = 45, 62
RANDOM = np.random.default_rng(46)
WEIGHTS = {"w": (8, 3, 3, 3), "one": (1, 8, 1, 1), "three": (3, 8, 1, 1)}
INTEGERS = {np.dtype(name) for name in ("uint8", "int8", "uint16", "int16", "int32", "int64")}


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def cast(source, target, to):
    return node("Cast", source, target, to=to)


# Constants by name, for all forms.
CONSTANTS = {
    "a0": np.array([0]), "a1": np.array([1]), "a01": np.array([0, 1]), "k2": np.array(2),
    "half": np.float32(0.5), "minus": np.float32(-3), "eighth": np.float32(0.125), "lo": np.float32(0),
    "hi": np.float32(255), "bias": np.arange(8, dtype=np.float32).reshape(8, 1, 1) - 3,
    "u255": np.uint8(255), "u200": np.uint8(200), "u7": np.uint8(7), "i3": np.int32(3),
    "row3": np.arange(3, dtype=np.float32) - 1,
}

# name: (nodes from "r", a map of 8 channels; the output's type; channels of its map)
F, I64, I32, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
U8, I8, U16, I16 = TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16
FORMS = {
    "argmax": ([node("ArgMax", "r", "y", axis=1)], I64, 1),
    "argmax_no_axis": ([node("ArgMax", "r", "y", axis=1, keepdims=0)], I64, 1),
    "argmin_last": ([node("Transpose", "r", "t", perm=[0, 2, 3, 1]),
                     node("ArgMin", "t", "y", axis=-1, keepdims=0)], I64, 1),
    "squeezed": ([node("Conv", "r one", "s"), node("Squeeze", "s a1", "y")], F, 1),
    "rows_columns": ([node("Conv", "r one", "s"), node("Squeeze", "s a01", "y")], F, 1),
    "no_image_axis": ([node("Squeeze", "r a0", "y")], F, 8),
    "five_axes": ([node("Unsqueeze", "r a1", "y")], F, 8),
    "channels_last": ([node("Transpose", "r", "y", perm=[0, 2, 3, 1])], F, 8),
    "last_no_image_axis": ([node("Transpose", "r", "t", perm=[0, 2, 3, 1]), node("Squeeze", "t a0", "y")],
                           F, 8),
    "one_channel_last": ([node("Conv", "r one", "s"), node("Transpose", "s", "y", perm=[0, 2, 3, 1])], F, 1),
    "max": ([node("ReduceMax", "r", "y", axes=[1], keepdims=0)], F, 1),
    "unsqueezed": ([node("ArgMax", "r", "s", axis=1, keepdims=0), node("Unsqueeze", "s a1", "y")], I64, 1),
    "greater": ([node("ArgMax", "r", "s", axis=1, keepdims=0), node("Greater", "s k2", "b"),
                 node("Unsqueeze", "b a1", "y")], B, 1),
    "elementwise_2d": ([node("Conv", "r one", "s"), node("Squeeze", "s a01", "q"), node("Mul", "q eighth", "m"),
                        node("Sub", "m half", "d"), node("Abs", "d", "y")], F, 1),
    "elementwise_3d": ([node("Squeeze", "r a0", "q"), node("Add", "q bias", "m"), node("Relu", "m", "y")], F, 8),
    "where_2d": ([node("Conv", "r one", "s"), node("Squeeze", "s a01", "q"), node("Greater", "q minus", "g"),
                  node("Where", "g q half", "y")], F, 1),
    "not_equal": ([node("ArgMax", "r", "s", axis=1, keepdims=0), node("Equal", "s k2", "e"),
                   node("Not", "e", "y")], B, 1),
    "sum_of_two": ([node("Squeeze", "r a0", "q"), node("Relu", "q", "p"), node("Mul", "p q", "y")], F, 8),
    "last_colours": ([node("Conv", "r three", "s"), node("Transpose", "s", "t", perm=[0, 2, 3, 1]),
                      node("Add", "t row3", "y")], F, 3),
}


def typed_forms():
    forms = {
        "labels_u8": ([node("ArgMax", "r", "s", axis=1, keepdims=0), cast("s", "y", U8)], U8, 1),
        "labels_i32": ([node("ArgMax", "r", "s", axis=1), cast("s", "y", I32)], I32, 1),
        "mask_u8": ([node("Conv", "r one", "s"), node("Greater", "s minus", "g"), cast("g", "m", U8),
                     node("Mul", "m u255", "y")], U8, 1),
        "mask": ([node("Conv", "r one", "s"), node("Greater", "s minus", "y")], B, 1),
        "mask_channels": ([node("Greater", "r minus", "y")], B, 8),
        "picture_u8": ([node("Conv", "r three", "s"), node("Mul", "s eighth", "t"), node("Clip", "t lo hi", "c"),
                        node("Round", "c", "o"), cast("o", "y", U8)], U8, 3),
        "picture_u8_last": ([node("Conv", "r three", "s"), node("Clip", "s lo hi", "c"),
                             node("Transpose", "c", "t", perm=[0, 2, 3, 1]), cast("t", "y", U8)], U8, 3),
        "whole_and_back": ([node("Mul", "r eighth", "s"), cast("s", "i", I32), cast("i", "y", F)], F, 8),
        "narrow_wraps": ([node("ArgMax", "r", "s", axis=1), cast("s", "u", U8), node("Add", "u u200", "v"),
                          node("Mul", "v u7", "w2"), node("Sub", "w2 u200", "z"), cast("z", "y", F)], F, 1),
        "integers_narrowed": ([node("Mul", "r hi", "s"), cast("s", "i", I32), cast("i", "y", I8)], I8, 8),
        "quotient": ([cast("r", "i", I32), node("Div", "i i3", "y")], I32, 8),
        "to_bool": ([node("Mul", "r eighth", "s"), cast("s", "y", B)], B, 8),
        "bool_to_int": ([node("Greater", "r minus", "g"), cast("g", "y", I64)], I64, 8),
    }
    for to, name in ((I8, "i8"), (U16, "u16"), (I16, "i16"), (I32, "i32"), (I64, "i64")):
        low = np.float32(0 if to == U16 else -128)
        CONSTANTS[f"low_{name}"] = low
        forms[f"cast_{name}"] = ([node("Mul", "r eighth", "s"), node("Clip", f"s low_{name}", "c"),
                                  cast("c", "y", to)], to, 8)
    return forms


FORMS.update(typed_forms())


def save(path, nodes, kind, opset=17):
    constants = [numpy_helper.from_array(RANDOM.integers(-3, 4, shape).astype(np.float32), name)
                 for name, shape in WEIGHTS.items()]
    constants += [numpy_helper.from_array(np.asarray(value), name) for name, value in CONSTANTS.items()]
    read = {name for n in nodes for name in n.input} | {"w"}
    size = ["rows", "columns"]
    graph = helper.make_graph(
        [node("Conv", "x w", "r", pads=[1] * 4), *nodes], "form",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, *size])],
        [helper.make_tensor_value_info("y", kind, None)], [c for c in constants if c.name in read])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, path)


class Refused(Exception):
    pass


def call(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def as_map(array, channels):
    """Rows x columns x channels of an output of any of the forms."""
    shape = [extent for extent in array.shape if extent != 1]
    if channels == 1:
        return array.reshape(ROWS, COLUMNS, 1)
    flat = array.reshape(shape)
    return flat if shape[-1] == channels else np.moveaxis(flat, 0, -1)


def same(ours, theirs, what):
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        raise Refused(f"{what}: {ours.dtype} {ours.shape}, expected {theirs.dtype} {theirs.shape}")
    if not np.array_equal(ours, theirs):
        wrong = ours != theirs
        at = tuple(int(i[0]) for i in np.nonzero(wrong))
        raise Refused(f"{what}: {int(wrong.sum())} of {wrong.size} differ, first {at}: {ours[at]}, "
                      f"expected {theirs[at]}")


def hash_of(text):
    return json.loads(text)["output"]["hash"]


def check_arrays(program, model, image, folder, expected):
    """The .npy of runs of several plans, and of parts."""
    whole = hash_of(call(program, "run", model, image, "--json", "-o", folder / "y.npy", "--untiled"))
    same(np.load(folder / "y.npy"), expected, "untiled")
    plans = [["--tiles", "3x3"], ["--memory", "24MiB"], ["--threads", "2"], ["--memory", "24MiB", "--threads", "3"]]
    for plan in plans:
        found = hash_of(call(program, "run", model, image, "--json", "-o", folder / "y.npy", *plan))
        same(np.load(folder / "y.npy"), expected, " ".join(plan))
        if found != whole:
            raise Refused(f"{plan}: hash {found}, untiled {whole}")
    call(program, "verify", model, image, "--tiles", "3x3")
    parts = [folder / f"part{i}.npy" for i in (1, 2, 3)]
    for i, part in enumerate(parts):
        call(program, "run", model, image, "--part", f"{i + 1}/3", "-o", part)
    merged = hash_of(call(program, "merge", *parts, "--json", "-o", folder / "merged.npy"))
    same(np.load(folder / "merged.npy"), expected, "merged")
    if merged != whole:
        raise Refused(f"merged: hash {merged}, untiled {whole}")
    call(program, "merge", *parts, "-o", folder / "merged.tif")


def picture_type(expected, channels):
    """What TIFFs hold of a type; labels of 8 classes fit 8 bits."""
    if expected.dtype == bool:
        return np.uint8
    if expected.dtype == np.int64:
        return np.uint8 if channels == 1 else np.int32
    return expected.dtype


def check_pictures(program, model, image, folder, expected, channels):
    values = as_map(expected, channels)
    kind = picture_type(expected, channels)
    stored = values.astype(kind)
    for name, options in (("y.tif", []), ("tiled.tif", ["--tiff-tile", "16", "--tiff-compress", "deflate"]),
                          ("y.ome.tif", [])):
        call(program, "run", model, image, "-o", folder / name, *options)
        found = tifffile.imread(folder / name)
        if name == "y.ome.tif" and found.shape[0] == channels and channels > 1:
            found = np.moveaxis(found, 0, -1)
        found = found.reshape(ROWS, COLUMNS, channels)
        if channels == 1 and values.dtype == np.int64:  # of integers that are no labels 32 bits
            found = found.astype(kind)
        same(found, stored, name)
    same(tifffile.imread(folder / "merged.tif").reshape(stored.shape).astype(kind), stored, "merged.tif")
    call(program, "run", model, image, "-o", folder / "y.zarr")
    described = json.loads((folder / "y.zarr" / "zarr.json").read_text())
    if described["data_type"] not in (np.dtype(kind).name, "int32", "uint8"):
        raise Refused(f"y.zarr: {described['data_type']}, expected {np.dtype(kind).name}")
    if channels == 1:  # Pillow reads portable float maps of one channel
        call(program, "run", model, image, "-o", folder / "y.pfm")
        found = np.asarray(Image.open(folder / "y.pfm")).reshape(ROWS, COLUMNS, 1)
        same(found, values.astype(np.float32), "y.pfm")
    if channels not in (1, 3) or np.dtype(kind) not in (np.uint8, np.uint16):
        return
    call(program, "run", model, image, "-o", folder / "y.png")
    scale = 255 if expected.dtype == bool else 1
    found = np.asarray(Image.open(folder / "y.png")).reshape(ROWS, COLUMNS, channels)
    same(found.astype(np.int64), stored.astype(np.int64) * scale, "y.png")


def check_form(program, name, folder):
    nodes, kind, channels = FORMS[name]
    model, image = folder / f"{name}.onnx", folder / "x.npy"
    save(model, nodes, kind, 13 if name == "max" else 17)
    x = RANDOM.integers(-4, 5, (1, 3, ROWS, COLUMNS)).astype(np.float32)
    np.save(image, x)
    expected = onnxruntime.InferenceSession(str(model)).run(None, {"x": x})[0]
    check_arrays(program, model, image, folder, expected)
    check_pictures(program, model, image, folder, expected, channels)


def check_last_image(program, folder):
    """An .npy of the image as a model with channels last declares it, of three types."""
    weights = numpy_helper.from_array(RANDOM.integers(-3, 4, WEIGHTS["w"]).astype(np.float32), "w")
    nodes = [node("Cast", "x", "f", to=F), node("Transpose", "f", "t", perm=[0, 3, 1, 2]),
             node("Conv", "t w", "r", pads=[1] * 4), node("Transpose", "r", "y", perm=[0, 2, 3, 1])]
    scale = numpy_helper.from_array(np.float32(0.5), "scale"), numpy_helper.from_array(np.int8(-3), "zero")
    for kind, dtype in ((F, np.float32), (U8, np.uint8), (I8, np.int8)):
        if kind == I8:
            nodes[0] = node("DequantizeLinear", "x scale zero", "f")
        graph = helper.make_graph(
            nodes, "last", [helper.make_tensor_value_info("x", kind, [1, "rows", "columns", 3])],
            [helper.make_tensor_value_info("y", F, None)],
            [weights, *(scale if kind == I8 else ())])
        model = folder / "last.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        x = RANDOM.integers(0, 9, (1, ROWS, COLUMNS, 3)).astype(dtype)
        expected = onnxruntime.InferenceSession(str(model)).run(None, {"x": x})[0]
        for image in (x, x[0]):
            np.save(folder / "x.npy", image)
            for plan in (["--untiled"], ["--tiles", "2x3"], ["--memory", "24MiB"]):
                call(program, "run", model, folder / "x.npy", "-o", folder / "y.npy", "--scale", "1",
                     "--mean", "0", "--std", "1", *plan)
                if kind == U8:
                    continue  # samples are scaled as those of pictures; that it runs is enough
                same(np.load(folder / "y.npy"), expected, f"channels last, {' '.join(plan)}")


def main():
    program, names = sys.argv[1], sys.argv[2:] or list(FORMS)
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check_form(program, name, pathlib.Path(folder))
            except Refused as why:
                failed += 1
                print(f"FAIL  {name}: {why}")
            else:
                print(f"ok    {name}")
    if names == list(FORMS):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check_last_image(program, pathlib.Path(folder))
            except Refused as why:
                failed += 1
                print(f"FAIL  image with channels last: {why}")
    print(f"{len(names) - failed} of {len(names)} forms pass")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
