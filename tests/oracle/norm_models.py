"""Small networks with every form of norm that exporters write, for check_models.py.

    norm_models.py FOLDER

Each is a convolution of 3 to 16 channels, a norm in one form, and a convolution.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = 16
LAST, FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
RANDOM = np.random.default_rng(0)


def weight(name, *shape):
    return numpy_helper.from_array(RANDOM.uniform(-1, 1, shape).astype(np.float32), name)


def number(name, value):
    array = np.asarray(value)
    kind = np.int64 if array.dtype.kind == "i" else np.float32
    return numpy_helper.from_array(array.astype(kind), name)


def op(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def save(folder, name, nodes, constants, opset=17, prefix="norm"):
    """`nodes` make "n" of "c"."""
    first = op("Conv", "x w0 b0", "c", kernel_shape=[3, 3], pads=[1] * 4)
    last = op("Conv", "n w1", "y", kernel_shape=[3, 3], pads=[1] * 4)
    constants = [*constants, weight("w0", CHANNELS, 3, 3, 3), weight("b0", CHANNELS),
                 weight("w1", 4, CHANNELS, 3, 3)]
    graph = helper.make_graph(
        [first, *nodes, last], name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, "height", "width"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, folder / f"{prefix}_{name}.onnx")


def over_channels(folder):
    vectors = [weight("s", CHANNELS), weight("b", CHANNELS)]
    columns = [weight("s", CHANNELS, 1, 1), weight("b", CHANNELS, 1, 1)]
    eps, two = number("eps", 1e-6), number("two", 2.0)
    save(folder, "layer", [
        op("Transpose", "c", "t", perm=LAST), op("LayerNormalization", "t s b", "l", axis=-1),
        op("Transpose", "l", "n", perm=FIRST)], vectors)
    save(folder, "layer_written_out", [
        op("ReduceMean", "c", "m", axes=[1]), op("Sub", "c m", "d"), op("Pow", "d two", "p"),
        op("ReduceMean", "p", "v", axes=[1]), op("Add", "v eps", "e"), op("Sqrt", "e", "r"),
        op("Div", "d r", "q"), op("Mul", "q s", "a"), op("Add", "a b", "n")],
        [*columns, eps, two])
    save(folder, "convnext_block", [  # as exporters write it: everything between two Transposes
        op("Transpose", "c", "t", perm=LAST), op("LayerNormalization", "t s b", "l", axis=-1),
        op("MatMul", "l m1", "f1"), op("Add", "b1 f1", "f2"), op("Div", "f2 root", "e0"),
        op("Erf", "e0", "e1"), op("Add", "e1 one", "e2"), op("Mul", "f2 e2", "e3"),
        op("Mul", "e3 half", "e4"), op("MatMul", "e4 m2", "g1"), op("Add", "b2 g1", "g2"),
        op("Mul", "s g2", "g3"), op("Transpose", "g3", "g4", perm=FIRST), op("Add", "c g4", "n")],
        [*vectors, weight("m1", CHANNELS, 4 * CHANNELS), weight("b1", 4 * CHANNELS),
         weight("m2", 4 * CHANNELS, CHANNELS), weight("b2", CHANNELS), number("root", 2.0**0.5),
         number("one", 1.0), number("half", 0.5)])
    save(folder, "softmax_last", [
        op("Transpose", "c", "t", perm=LAST), op("Clip", "t zero", "k"), op("Softmax", "k", "l"),
        op("Transpose", "l", "n", perm=FIRST)], [number("zero", 0.0)])
    save(folder, "rms", [
        op("Transpose", "c", "t", perm=LAST), op("RMSNormalization", "t s", "l", axis=-1),
        op("Transpose", "l", "n", perm=FIRST)], vectors[:1], opset=23)
    for p in (1, 2):
        save(folder, f"l{p}", [op("LpNormalization", "c", "n", axis=1, p=p)], [])
    save(folder, "spatial_attention", [
        op("ReduceMean", "c", "m", axes=[1]), op("ReduceMax", "c", "p", axes=[1]),
        op("Concat", "m p", "a", axis=1), op("Conv", "a wa", "g", kernel_shape=[7, 7], pads=[3] * 4),
        op("Sigmoid", "g", "s"), op("Mul", "c s", "n")], [weight("wa", 1, 2, 7, 7)])


def over_space(folder):
    vectors = [weight("s", CHANNELS), weight("b", CHANNELS)]
    columns = [weight("s", CHANNELS, 1, 1), weight("b", CHANNELS, 1, 1)]
    save(folder, "instance", [
        op("InstanceNormalization", "c s b", "i"), op("LeakyRelu", "i", "n", alpha=0.1)], vectors)
    save(folder, "group", [
        op("GroupNormalization", "c s b", "i", num_groups=4), op("Relu", "i", "n")], vectors,
        opset=21)
    save(folder, "group_reshaped", [
        op("Reshape", "c g", "t"), op("InstanceNormalization", "t one zero", "i"),
        op("Shape", "c", "size"), op("Reshape", "i size", "u"), op("Mul", "u s", "a"),
        op("Add", "a b", "n")],
        [*columns, number("g", [0, 4, -1]), number("one", [1.0] * 4), number("zero", [0.0] * 4)])
    save(folder, "layer_of_map", [op("LayerNormalization", "c s b", "n", axis=1)], columns)
    save(folder, "mean_variance", [op("MeanVarianceNormalization", "c", "n", axes=[0, 2, 3])], [])
    save(folder, "global_response", [
        op("ReduceL2", "c", "g", axes=[2, 3]), op("ReduceMean", "g", "m", axes=[1]),
        op("Add", "m eps", "e"), op("Div", "g e", "r"), op("Mul", "c r", "a"), op("Mul", "a s", "k"),
        op("Add", "k b", "p"), op("Add", "p c", "n")], [*columns, number("eps", 1e-6)])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    over_channels(pathlib.Path(sys.argv[1]))
    over_space(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
