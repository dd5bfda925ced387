"""Small networks whose weights the file computes from constants, for check_models.py.

    constant_models.py FOLDER

Each is a convolution of 3 to 16 channels, an operator with such weights, and a convolution.
"""

import pathlib
import sys

import numpy as np
from onnx import helper

from norm_models import CHANNELS, number, op, save, weight

SHAPE = (CHANNELS, CHANNELS, 3, 3)
CONV = op("Conv", "c w", "n", pads=[1] * 4)


def keep(folder, name, nodes, constants, opset=17):
    save(folder, name, nodes, constants, opset, prefix="constant")


def weights(folder):
    """Filters by operators of every kind."""
    v, vectors = weight("v", *SHAPE), [weight(k, CHANNELS) for k in ("s", "b", "m")]
    ones = number("ones", np.ones(CHANNELS, np.float32))
    flat, full = number("flat", [1, CHANNELS, 9 * CHANNELS]), number("full", list(SHAPE))
    back, filters = op("Reshape", "r full", "w"), weight("v", *SHAPE)
    keep(folder, "weight_norm", [
        op("ReduceL2", "v", "l", axes=[1, 2, 3]), op("Div", "v l", "u"), op("Mul", "u g", "w"), CONV],
        [v, weight("g", CHANNELS, 1, 1, 1)])
    keep(folder, "weight_standard", [
        op("ReduceMean", "v", "mean", axes=[1, 2, 3]), op("Sub", "v mean", "d"),
        op("Mul", "d d", "d2"), op("ReduceMean", "d2", "va", axes=[1, 2, 3]),
        op("Add", "va eps", "ve"), op("Sqrt", "ve", "sd"), op("Div", "d sd", "w"), CONV],
        [v, number("eps", 1e-5)])
    keep(folder, "batch_norm", [
        op("Reshape", "v flat", "f"), op("BatchNormalization", "f s b m ones", "r"), back, CONV],
        [filters, flat, full, ones, *vectors])
    keep(folder, "standard_as_in_training", [
        op("Reshape", "v flat", "f"), helper.make_node(
            "BatchNormalization", ["f", "s", "b", "m", "ones"], ["r", "rm", "rv"],
            training_mode=1), back, CONV], [filters, flat, full, ones, *vectors])
    keep(folder, "instance_norm", [
        op("Reshape", "v flat", "f"), op("InstanceNormalization", "f s b", "r"), back, CONV],
        [filters, flat, full, *vectors[:2]])
    for kind, nodes in {
            "matmul": [op("MatMul", "p q", "r")],
            "gemm": [op("Gemm", "p q", "r")],
            "einsum": [op("Einsum", "p q", "r", equation="ij,jk->ik")]}.items():
        keep(folder, kind, [*nodes, back, CONV],
             [weight("p", CHANNELS, 5), weight("q", 5, 9 * CHANNELS), full])
    keep(folder, "split", [
        helper.make_node("Split", ["v", "halves"], ["w0a", "w0b"], axis=0),
        op("Add", "w0a w0b", "h"), op("Concat", "h h", "w", axis=0), CONV],
        [v, number("halves", [CHANNELS // 2] * 2)])
    keep(folder, "tile", [op("Tile", "t times", "w"), op("Conv", "c w", "n", pads=[1] * 4,
                                                         group=CHANNELS)],
         [weight("t", 1, 1, 3, 3), number("times", [CHANNELS, 1, 1, 1])])
    keep(folder, "one_hot", [op("OneHot", "i depth pair", "h"), op("Reshape", "h shape", "w"),
                             op("Conv", "c w", "n")],
         [number("i", list(range(CHANNELS))), number("depth", CHANNELS),
          number("pair", [0.25, 1.5]), number("shape", [CHANNELS, CHANNELS, 1, 1])])
    keep(folder, "rotated", [  # a discrete cosine transform, as exporters of JPEG networks write it
        op("Range", "zero many one", "k"), op("Cast", "k", "kf", to=1),
        op("Unsqueeze", "kf last", "row"), op("Mul", "kf angle", "ka"), op("Mul", "row ka", "a"),
        op("Cos", "a", "cos"), op("Reshape", "cos shape", "w"), op("Conv", "c w", "n")],
        [number("zero", 0), number("many", CHANNELS), number("one", 1), number("last", [1]), number("angle", 0.1),
         number("shape", [CHANNELS, CHANNELS, 1, 1])])


def gates(folder):
    """Numbers beside maps."""
    for kind in ("Sigmoid", "Relu", "Tanh", "Softplus", "Erf", "LeakyRelu", "HardSwish"):
        keep(folder, kind.lower(), [op(kind, "k", "g"), op("Mul", "c g", "n")],
             [weight("k", CHANNELS, 1, 1)])
    keep(folder, "softmax", [op("Softmax", "k", "p", axis=0), op("Gather", "p i", "g"),
                             op("Mul", "c g", "n")], [weight("k", 2), number("i", 0)])
    keep(folder, "layer_norm", [
        op("LayerNormalization", "k s b", "l", axis=-1), op("Reshape", "l column", "g"),
        op("Add", "c g", "n")],
        [weight("k", 1, CHANNELS), weight("s", CHANNELS), weight("b", CHANNELS),
         number("column", [1, CHANNELS, 1, 1])])


def maps(folder):
    """Tables of positions that are resized to the map."""
    sizes = [op("Shape", "c", "sc"), op("Slice", "sc two four", "hw"),
             op("Concat", "table hw", "size", axis=0)]
    shape = [number("two", [2]), number("four", [4]), number("table", [1, CHANNELS]),
             weight("k", 1, CHANNELS, 14, 14)]
    for mode in ("linear", "cubic", "nearest"):
        keep(folder, f"positions_{mode}", [
            *sizes, helper.make_node("Resize", ["k", "", "", "size"], ["p"], mode=mode),
            op("Add", "c p", "n")], shape)
    keep(folder, "positions_convolved", [
        op("Conv", "k u", "kc", pads=[1] * 4), op("Sin", "kc", "ks"), *sizes,
        helper.make_node("Resize", ["ks", "", "", "size"], ["p"], mode="linear"),
        op("Add", "c p", "n")], [*shape, weight("u", *SHAPE)])


def main():
    folder = pathlib.Path(sys.argv[1])
    weights(folder)
    gates(folder)
    maps(folder)


if __name__ == "__main__":
    main()
