"""Small networks with operators in forms that exporters write, for check_models.py.

    operator_models.py FOLDER

Each is a convolution of 3 to 16 channels, the operator, and a convolution, as in norm_models.py.
"""

import pathlib
import sys

from onnx import helper

from norm_models import CHANNELS, FIRST, LAST, RANDOM, number, op, save, weight


def keep(folder, name, nodes, constants, opset=17):
    save(folder, name, nodes, constants, opset, prefix="op")


def sampled(folder):
    """A map moved by a flow that is computed from it: the whole of it may be asked for."""
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            keep(folder, f"grid_sample_{mode}_{padding}", [
                op("Conv", "c wf", "f", kernel_shape=[3, 3], pads=[1] * 4), op("Tanh", "f", "g"),
                op("Mul", "g far", "h"), op("Transpose", "h", "t", perm=LAST),
                op("GridSample", "c t", "n", mode=mode, padding_mode=padding,
                   align_corners=int(padding == "border"))],
                [weight("wf", 2, CHANNELS, 3, 3), number("far", 1.3)])


def found(folder):
    """Labels of pixels, as a number again."""
    keep(folder, "arg_max", [
        op("ArgMax", "c", "a", axis=1, keepdims=1), op("Cast", "a", "f", to=1),
        op("Mul", "c f", "n")], [])
    keep(folder, "log_sum_exp", [
        op("ReduceLogSumExp", "c", "s", axes=[1], keepdims=1), op("Sub", "c s", "n")], [])
    keep(folder, "product", [
        op("ReduceProd", "c", "p", axes=[1], keepdims=1), op("Add", "c p", "n")], [])
    for p in (1, 2, 3):
        keep(folder, f"global_lp_pool_{p}", [
            op("GlobalLpPool", "c", "g", p=p), op("Div", "c g", "n")], [])
    for order in (0, 1):
        keep(folder, f"max_pool_indices_{order}", [
            helper.make_node("MaxPool", ["c"], ["v", "i"], kernel_shape=[3, 2], strides=[2, 1],
                             pads=[1, 0, 1, 1], storage_order=order, ceil_mode=1),
            op("Cast", "i", "f", to=1), op("Mul", "f small", "s"), op("Add", "v s", "n")],
            [number("small", 1e-5)])
    for p in (1, 3, 5, 9):
        keep(folder, f"lp_pool_{p}", [
            op("LpPool", "c", "n", p=p, kernel_shape=[3, 3], pads=[1] * 4)], [])
    keep(folder, "remainder", [op("Mod", "c seven", "n", fmod=1)], [number("seven", 0.7)])


def contracted(folder):
    """Equations of Einsum that exporters write."""
    keep(folder, "einsum_channels", [
        op("Einsum", "c w", "n", equation="bchw,oc->bohw")], [weight("w", CHANNELS, CHANNELS)])
    keep(folder, "einsum_attention", [
        op("AveragePool", "c", "p", kernel_shape=[4, 4], strides=[4, 4]),
        op("Einsum", "c p", "s", equation="bchw,bcHW->bhwHW"), op("Sigmoid", "s", "a"),
        op("Einsum", "a p", "n", equation="bhwHW,bcHW->bchw")], [])
    keep(folder, "einsum_gate", [
        op("Einsum", "c", "m", equation="bchw->bc"), op("Softmax", "m", "g", axis=1),
        op("Einsum", "c g", "n", equation="bchw,bc->bchw")], [])


def summed(folder):
    """Running sums, and triangles of maps."""
    for axis, name in ((1, "channels"), (3, "columns"), (2, "rows")):
        keep(folder, f"cum_sum_{name}", [
            op("CumSum", "c axis", "s", exclusive=axis % 2, reverse=axis // 2),
            op("Mul", "s small", "n")], [number("axis", axis), number("small", 0.02)])
    keep(folder, "triangle", [
        op("Trilu", "c k", "u", upper=0), op("CumSum", "u axis", "s"), op("Sigmoid", "s", "n")],
        [number("k", 7), number("axis", 3)])


def unpooled(folder):
    """A SegNet's pair of layers."""
    pool = op("MaxPool", "c", "p", kernel_shape=[2, 2], strides=[2, 2])
    pool.output.append("i")
    keep(folder, "max_unpool", [
        pool, op("Conv", "p w", "q", kernel_shape=[3, 3], pads=[1] * 4), op("Shape", "c", "s"),
        op("MaxUnpool", "q i s", "n", kernel_shape=[2, 2], strides=[2, 2])],
        [weight("w", CHANNELS, CHANNELS, 3, 3)])


def moved(folder):
    """Other forms of what is known."""
    keep(folder, "depth_of_one", [
        op("Unsqueeze", "c two", "d"), op("Conv", "d w", "e", kernel_shape=[1, 3, 3],
                                          pads=[0, 1, 1, 0, 1, 1]),
        op("Squeeze", "e two", "n")],
        [number("two", [2]), weight("w", CHANNELS, CHANNELS, 1, 3, 3)])
    keep(folder, "swish_last", [
        op("Transpose", "c", "t", perm=LAST), op("Sigmoid", "t", "s"), op("Mul", "t s", "u"),
        op("Add", "u b", "v"), op("Transpose", "v", "n", perm=FIRST)],
        [weight("b", 1, 1, 1, CHANNELS)])


def turned(folder):
    """Maps that are flipped, turned, rolled or go on around their ends."""
    far = [number("far", -2**63 + 1), number("end", 2**62), number("zero", [0]), number("one", [1]),
           number("two", [2]), number("three", [3]), number("last", [-1]), number("back", [-1, -1]),
           number("fars", [-2**63 + 1, -2**63 + 1]), number("axes", [2, 3]), number("far1", [-2**63 + 1]),
           number("end1", [2**62]), number("five", [5])]
    keep(folder, "flip_columns", [op("Slice", "c last far1 three last", "n")], far)
    keep(folder, "flip_rows", [op("Slice", "c last far1 two last", "n")], far)
    keep(folder, "flip_both", [op("Slice", "c back fars axes back", "n")], far)
    keep(folder, "flip_channels", [op("Slice", "c last far1 one last", "n")], far)
    keep(folder, "turn", [
        op("Transpose", "c", "t", perm=[0, 1, 3, 2]), op("Slice", "t last far1 two last", "f"),
        op("Conv", "f wt", "g", kernel_shape=[3, 3], pads=[1] * 4), op("Slice", "g last far1 two last", "h"),
        op("Transpose", "h", "n", perm=[0, 1, 3, 2])], [*far, weight("wt", CHANNELS, CHANNELS, 3, 3)])
    for axis, name in (("three", "columns"), ("two", "rows")):
        keep(folder, f"circular_{name}", [
            op("Slice", f"c last end1 {axis}", "l"), op("Slice", f"c zero one {axis}", "r"),
            op("Concat", "l c r", "n", axis=3 if name == "columns" else 2)], far)
        keep(folder, f"roll_{name}", [
            op("Slice", f"c five end1 {axis}", "l"), op("Slice", f"c zero five {axis}", "r"),
            op("Concat", "l r", "n", axis=3 if name == "columns" else 2)], far)
    keep(folder, "pad_wrap", [op("Pad", "c pads", "n", mode="wrap")],
         [number("pads", [0, 0, 2, 3, 0, 0, 1, 40])], opset=19)
    keep(folder, "pad_wrap_cut", [op("Pad", "c pads", "n", mode="wrap")],
         [number("pads", [0, 0, -2, 3, 0, 0, 4, -1])], opset=19)


def ranked(folder):
    """Norms, pads, pools and convolutions of tensors that are maps in another shape or order."""
    stats = [weight("s", CHANNELS), weight("b", CHANNELS), weight("m", CHANNELS),
             number("v", [0.5 + i / 16 for i in range(CHANNELS)])]
    shapes = [number("flat", [1, CHANNELS, -1]), number("tokens", [-1, CHANNELS]), number("one", [1]),
              number("two", [2]), number("four", [4])]

    def whole(nodes):
        """Back from "t" with the shape of the map."""
        return [op("Shape", "c", "size"), *nodes, op("Reshape", "t size", "n")]

    keep(folder, "norm_tokens", [  # as LeViT has it: (pixels, channels)
        op("Shape", "c", "size"), op("Reshape", "c flat", "f"), op("Transpose", "f", "g", perm=[0, 2, 1]),
        op("Reshape", "g tokens", "h"), op("BatchNormalization", "h s b m v", "i"),
        op("Unsqueeze", "i zero", "j"), op("Transpose", "j", "t", perm=[0, 2, 1]),
        op("Reshape", "t size", "n")], [*stats, *shapes, number("zero", [0])])
    keep(folder, "norm_rank_3", whole([
        op("Reshape", "c flat", "f"), op("BatchNormalization", "f s b m v", "t")]), [*stats, *shapes])
    keep(folder, "norm_rows", [  # axis 1 is no channels
        op("Transpose", "c", "f", perm=[2, 1, 3, 0]), op("BatchNormalization", "f s b m v", "g"),
        op("Transpose", "g", "n", perm=[3, 1, 0, 2])], [*stats, *shapes])
    for mode in ("constant", "reflect", "edge"):
        keep(folder, f"pad_rank_3_{mode}", [
            op("Squeeze", "c zero", "f"), op("Pad", "f pads", "g", mode=mode),
            op("Slice", "g zeros sizes", "h"), op("Unsqueeze", "h zero", "n")],
            [number("zero", [0]), number("pads", [0, 2, -1, 3, 0, 4]), number("zeros", [3, 0, 0]),
             number("sizes", [3 + CHANNELS, 2**31, 2**31])] if mode == "constant" else
            [number("zero", [0]), number("pads", [2, 2, -1, 1, 0, 4]), number("zeros", [3, 0, 0]),
             number("sizes", [3 + CHANNELS, 2**31, 2**31])])
    keep(folder, "local_response", [  # torch.nn.LocalResponseNorm(5)
        op("Mul", "c c", "q"), op("Unsqueeze", "q one", "u"), op("Pad", "u pads", "p"),
        op("AveragePool", "p", "a", kernel_shape=[5, 1, 1], strides=[1, 1, 1]),
        op("Squeeze", "a one", "t"), op("Mul", "t alpha", "e"), op("Add", "e k", "f"),
        op("Pow", "f beta", "g"), op("Div", "c g", "n")],
        [*shapes, number("pads", [0, 0, 2, 0, 0, 0, 0, 2, 0, 0]), number("alpha", 0.3),
         number("k", 1.0), number("beta", 0.75)])
    keep(folder, "local_response_1d", [  # the same for (1, 1, channels, pixels)
        op("Mul", "c c", "q"), op("Reshape", "q sizes", "u"), op("Pad", "u pads", "p"),
        op("AveragePool", "p", "a", kernel_shape=[3, 1]), op("Shape", "c", "size"),
        op("Reshape", "a size", "t"), op("Add", "t k", "f"), op("Div", "c f", "n")],
        [number("sizes", [1, 1, CHANNELS, -1]), number("pads", [0, 0, 1, 0, 0, 0, 1, 0]),
         number("k", 1.0)])
    keep(folder, "conv_rank_5", [  # as in lambda layers: each channel by the same filters
        op("Transpose", "c", "l", perm=LAST), op("Unsqueeze", "l one", "u"),
        op("Conv", "u w3 b3", "v", kernel_shape=[5, 3, 1], pads=[2, 1, 0, 2, 1, 0]),
        op("ReduceSum", "v one", "r", keepdims=0), op("Transpose", "r", "n", perm=FIRST)],
        [*shapes, weight("w3", 3, 1, 5, 3, 1), weight("b3", 3)])
    keep(folder, "conv_batch", [  # rows as a batch
        op("Transpose", "c", "f", perm=[2, 1, 3, 0]), op("Squeeze", "f three", "g"),
        op("Conv", "g w3 b3", "h", kernel_shape=[3], pads=[1, 1]), op("Unsqueeze", "h three", "i"),
        op("Transpose", "i", "n", perm=[3, 1, 0, 2])],
        [number("three", [3]), weight("w3", CHANNELS, CHANNELS, 3), weight("b3", CHANNELS)])
    keep(folder, "pool_rank_5", [
        op("Unsqueeze", "c two", "u"), op("MaxPool", "u", "v", kernel_shape=[1, 3, 3], pads=[0, 1, 1, 0, 1, 1]),
        op("Transpose", "v", "w", perm=[0, 2, 3, 1, 4]),
        op("AveragePool", "w", "x5", kernel_shape=[1, 3, 3], pads=[0, 1, 1, 0, 1, 1]),
        op("Transpose", "x5", "z", perm=[0, 3, 1, 2, 4]), op("Squeeze", "z two", "n")], shapes)


def nearest(folder):
    """Distances of pixels to a bank of vectors, as PatchCore has them: the nearest, or several."""
    bank = RANDOM.standard_normal((40, CHANNELS)).astype("float32")
    constants = [number("flat", [1, CHANNELS, -1]), number("tokens", [-1, CHANNELS]), number("last", [-1]),
                 number("minus", -2.0), number("floor", 0.0), number("k", [5]), number("one", [1]),
                 weight("w4", 4, CHANNELS, 1, 1), number("two", [2]), number("zero", [0]),
                 number("bank", bank.T.copy()), number("squares", (bank**2).sum(axis=1)[None])]
    distances = [
        op("Transpose", "c", "l", perm=LAST), op("Reshape", "l tokens", "t"), op("Pow", "t two_", "p"),
        op("ReduceSum", "p last", "xn", keepdims=1), op("MatMul", "t bank", "xy"), op("Mul", "xy minus", "m"),
        op("Add", "xn m", "a"), op("Add", "a squares", "b"), op("Clip", "b floor", "d2"), op("Sqrt", "d2", "d")]
    constants.append(number("two_", 2.0))
    size = [op("Shape", "c", "cs"), op("Slice", "cs two four_ zero", "hw"), op("Concat", "ones hw", "size", axis=0)]
    constants += [number("four_", [4]), number("ones", [1, 1])]
    keep(folder, "nearest", [*distances, *size, op("ReduceMin", "d", "s", axes=[1], keepdims=0),
                             op("Reshape", "s size", "sm"), op("Mul", "c sm", "n")], constants)
    found = op("TopK", "d k", "v", axis=1, largest=0)
    found.output.append("i")
    keep(folder, "nearest_five", [
        *distances, *size, found, op("Gather", "v first", "v0", axis=1), op("ReduceMean", "v", "vm", axes=[1], keepdims=0),
        op("Sub", "vm v0", "s"), op("Reshape", "s size", "sm"), op("Mul", "c sm", "n")],
        [*constants, number("first", 0)])
    best = op("TopK", "c k", "v", axis=1)
    best.output.append("i")
    keep(folder, "best_channels", [
        best, op("Cast", "i", "f", to=1), op("Mul", "v f", "g"), op("ReduceSum", "g one", "h"),
        op("Add", "c h", "n")], constants)


def unfolded(folder):
    """torch.nn.functional.unfold, as it is exported: windows of rows, then of columns; for pictures
    of 61x83 pixels."""
    rows = [[2 * i + k for i in range(31)] for k in range(3)]
    columns = [[i + 2 * k for i in range(81)] for k in range(3)]
    nodes = [op("Pad", "c pads", "p"), op("Gather", "p rows", "g1", axis=2),
             op("Gather", "g1 columns", "g2", axis=4), op("Transpose", "g2", "t", perm=[0, 1, 2, 4, 3, 5]),
             op("Reshape", "t flat", "u")]
    constants = [number("rows", rows), number("columns", columns), number("pads", [0, 0, 1, 1, 0, 0, 1, 1]),
                 number("flat", [1, 9 * CHANNELS, -1]), number("map", [1, 9 * CHANNELS, 31, 81]),
                 number("back", [1, CHANNELS, 31, 81])]
    keep(folder, "unfold_conv", [*nodes, op("Reshape", "u map", "m"), op("Conv", "m w9", "n")],
         [*constants, weight("w9", CHANNELS, 9 * CHANNELS, 1, 1)])
    keep(folder, "unfold_linear", [
        *nodes, op("Transpose", "u", "v", perm=[0, 2, 1]), op("MatMul", "v m9", "l"),
        op("Transpose", "l", "o", perm=[0, 2, 1]), op("Reshape", "o back", "n")],
        [*constants, weight("m9", 9 * CHANNELS, CHANNELS)])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for forms in (sampled, found, contracted, summed, unpooled, moved, turned, ranked, nearest, unfolded):
        forms(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
