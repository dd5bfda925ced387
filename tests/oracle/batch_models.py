"""Small networks for a batch of images as exporters write them, for check_models.py --batch.

    batch_models.py FOLDER

Half of them are fixed to a batch of 3, whose number stands in their shapes and constants; the others
say nothing of it. All are for images of 48x64 pixels.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IMAGES, CHANNELS, ROWS, COLUMNS = 3, 8, 48, 64
CELLS = ROWS * COLUMNS // 4
RANDOM = np.random.default_rng(0)


def weight(name, *shape):
    return numpy_helper.from_array(RANDOM.uniform(-1, 1, shape).astype(np.float32), name)


def numbers(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def op(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def save(folder, name, batch, nodes, constants, outputs="y"):
    """`nodes` make the outputs of "c", 8 channels of half as many rows and columns."""
    first = op("Conv", "x w0 b0", "c", kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    constants = [*constants, weight("w0", CHANNELS, 3, 3, 3), weight("b0", CHANNELS)]
    graph = helper.make_graph(
        [first, *nodes], name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, ROWS, COLUMNS])],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs.split()],
        constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / f"batch_{name}.onnx")


def fixed(folder):
    save(folder, "classes", IMAGES, [
        op("GlobalAveragePool", "c", "p"), op("Reshape", "p to", "r"), op("Gemm", "r w b", "g"),
        op("Softmax", "g", "y")],
        [numbers("to", IMAGES, CHANNELS), weight("w", CHANNELS, 10), weight("b", 10)])
    token = np.repeat(RANDOM.uniform(-1, 1, (1, 1, CHANNELS)), IMAGES, axis=0)
    save(folder, "tokens", IMAGES, [
        op("Reshape", "c to", "r"), op("Transpose", "r", "t", perm=[0, 2, 1]),
        op("Concat", "token t", "j", axis=1), op("LayerNormalization", "j s b", "l", axis=-1),
        op("MatMul", "l w", "m"), op("Gather", "m zero", "y", axis=1)],
        [numbers("to", IMAGES, CHANNELS, CELLS), numpy_helper.from_array(np.array(0), "zero"),
         numpy_helper.from_array(token.astype(np.float32), "token"), weight("s", CHANNELS),
         weight("b", CHANNELS), weight("w", CHANNELS, 5)])
    save(folder, "upsampled", IMAGES, [
        op("Relu", "c", "a"),
        helper.make_node("Resize", ["a", "", "", "sizes"], ["u"], mode="linear"),
        op("Slice", "u starts ends axes", "v"), op("Add", "v c3", "y"),
        op("ArgMax", "y", "k", axis=1, keepdims=0), op("Cast", "k", "labels", to=1)],
        [numbers("sizes", IMAGES, CHANNELS, ROWS, COLUMNS), numbers("starts", 0, 0, 0, 2),
         numbers("ends", IMAGES, CHANNELS, ROWS, COLUMNS), numbers("axes", 0, 1, 2, 3),
         numpy_helper.from_array(np.repeat(RANDOM.uniform(-1, 1, (1, CHANNELS, 1, 1)), IMAGES,
                                           axis=0).astype(np.float32), "c3")], "y labels")


def of_any_size(folder):
    save(folder, "any_view", "n", [
        op("Shape", "c", "shape"), op("Gather", "shape zero", "n", axis=0),
        op("Concat", "n rest", "to", axis=0), op("Reshape", "c to", "r"), op("MatMul", "r w", "m"),
        op("Relu", "m", "y")],
        [numbers("zero", 0), numbers("rest", -1), weight("w", CHANNELS * CELLS, 4)])
    save(folder, "any_map", "n", [
        op("InstanceNormalization", "c s b", "i"), op("Sigmoid", "i", "y"),
        op("ReduceMax", "c", "m", axes=[2, 3], keepdims=0)],
        [weight("s", CHANNELS), weight("b", CHANNELS)], "y m")


def main():
    folder = pathlib.Path(sys.argv[1])
    fixed(folder)
    of_any_size(folder)


if __name__ == "__main__":
    main()
