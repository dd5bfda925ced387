"""Small networks with attention in windows as exporters write it, for check_models.py.

    window_models.py FOLDER

Each is a convolution of 3 to 16 channels, a layer of a Swin transformer on its tokens, and a
convolution, for pictures of 24x32; area_large and area_large_wide are for 132x66. What is called other_... is no such attention: it has to be right
all the same.
"""

import pathlib
import sys

import numpy as np

from onnx import TensorProto, helper

from norm_models import CHANNELS, number, op, save, weight

HEIGHT, WIDTH, HEADS = 24, 32, 4
FALSE, TRUE = (helper.make_tensor("value", TensorProto.BOOL, [1], [value]) for value in (False, True))
SIZE = CHANNELS // HEADS
LINEAR = [weight("wqkv", CHANNELS, 3 * CHANNELS), weight("bqkv", 3 * CHANNELS),
          weight("wproj", CHANNELS, CHANNELS), weight("bproj", CHANNELS),
          weight("wfc1", CHANNELS, 2 * CHANNELS), weight("bfc1", 2 * CHANNELS),
          weight("wfc2", 2 * CHANNELS, CHANNELS), weight("bfc2", CHANNELS),
          weight("s", CHANNELS), weight("b", CHANNELS)]
NUMBERS = [number("zero", [0]), number("last", [2**31]), number("rows", [1]), number("columns", [2]),
           number("scale", SIZE**-0.5), number("root", 2.0**0.5), number("one", 1.0), number("half", 0.5),
           number("first_part", 0), number("second_part", 1), number("third_part", 2)]


def shape(name, *dims):
    return number(name, list(dims))


def roll(source, target, shift_rows, shift_columns):
    """torch.roll by minus the shifts, as it is exported."""
    nodes, constants = [], []
    for axis, shift in (("rows", shift_rows), ("columns", shift_columns)):
        made = f"{target}_{axis}" if axis == "rows" else target
        constants.append(number(f"{made}_at", [shift]))
        nodes += [op("Slice", f"{source} {made}_at last {axis}", f"{made}_1"),
                  op("Slice", f"{source} zero {made}_at {axis}", f"{made}_2"),
                  op("Concat", f"{made}_1 {made}_2", made, axis=1 if axis == "rows" else 2)]
        source = made
    return nodes, constants


def mask(window, shift):
    """What Swin's own code makes for this size: -100 between regions."""
    regions = np.zeros((HEIGHT, WIDTH))
    for i, rows in enumerate((slice(0, -window), slice(-window, -shift), slice(-shift, None))):
        for j, columns in enumerate((slice(0, -window), slice(-window, -shift), slice(-shift, None))):
            regions[rows, columns] = 3 * i + j
    parts = regions.reshape(HEIGHT // window, window, WIDTH // window, window).transpose(0, 2, 1, 3)
    parts = parts.reshape(-1, window * window)
    return np.where(parts[:, None, :] != parts[:, :, None], -100.0, 0.0).astype(np.float32)


def norm(source, target, written_out=False):
    if not written_out:
        return [op("LayerNormalization", f"{source} s b", target, axis=-1, epsilon=1e-5)]
    t = target
    return [op("ReduceMean", source, f"{t}m", axes=[-1]), op("Sub", f"{source} {t}m", f"{t}d"),
            op("Pow", f"{t}d two", f"{t}p"), op("ReduceMean", f"{t}p", f"{t}v", axes=[-1]),
            op("Add", f"{t}v eps", f"{t}e"), op("Sqrt", f"{t}e", f"{t}r"), op("Div", f"{t}d {t}r", f"{t}q"),
            op("Mul", f"{t}q s", f"{t}a"), op("Add", f"{t}a b", t)]


def mlp(source, target):
    return [op("MatMul", f"{source} wfc1", "f1"), op("Add", "bfc1 f1", "f2"), op("Div", "f2 root", "f3"),
            op("Erf", "f3", "f4"), op("Add", "f4 one", "f5"), op("Mul", "f2 f5", "f6"),
            op("Mul", "f6 half", "f7"), op("MatMul", "f7 wfc2", "f8"), op("Add", "bfc2 f8", target)]


def layer(folder, name, window=8, shift=0, masked=None, qkv="together", sizes="constant", opset=17,
          written_out=False):
    """One layer; `masked`: the constant of that, if it is not the mask of the shift."""
    n, down, across = window * window, HEIGHT // window, WIDTH // window
    count = down * across
    nodes = [op("Reshape", "c flat", "c3"), op("Transpose", "c3", "t", perm=[0, 2, 1]),
             *norm("t", "l", written_out)]
    constants = [*LINEAR, *NUMBERS, number("eps", 1e-5), number("two", 2.0),
                 shape("flat", 1, CHANNELS, -1), shape("map", 1, CHANNELS, HEIGHT, WIDTH),
                 weight("bias", 1, HEADS, n, n), shape("tokens", 1, HEIGHT * WIDTH, CHANNELS),
                 shape("nhwc", 1, HEIGHT, WIDTH, CHANNELS), shape("squares", -1, window, window, CHANNELS),
                 shape("sequences", -1, n, CHANNELS), shape("apart", count, n, 3, HEADS, SIZE),
                 shape("heads", count, n, HEADS, SIZE), shape("by_window", 1, count, HEADS, n, n),
                 shape("scores", -1, HEADS, n, n)]
    if sizes == "constant":
        constants += [shape("grid", 1, down, window, across, window, CHANNELS),
                      shape("joined", 1, down, across, window, window, CHANNELS)]
    else:  # what torch.onnx makes of x.shape[2] // window
        constants += [number("at2", 2), number("at3", 3), number("window", window),
                      shape("w1d", window), shape("unit", 1), shape("channel", CHANNELS)]
        nodes += [op("Shape", "c", "sh")]
        for axis in "23":
            nodes += [op("Gather", f"sh at{axis}", f"size{axis}"),
                      op("Div", f"size{axis} window", f"q{axis}"),
                      op("Unsqueeze", f"q{axis} zero", f"n{axis}")]
        nodes += [op("Concat", "unit n2 w1d n3 w1d channel", "grid", axis=0),
                  op("Concat", "unit n2 n3 w1d w1d channel", "joined", axis=0)]
    nodes += [op("Reshape", "l nhwc", "h")]
    source = "h"
    if shift:
        more, cuts = roll("h", "rolled", shift, shift)
        nodes, constants, source = nodes + more, constants + cuts, "rolled"
    nodes += [op("Reshape", f"{source} grid", "g"), op("Transpose", "g", "gt", perm=[0, 1, 3, 2, 4, 5]),
              op("Reshape", "gt squares", "w"), op("Reshape", "w sequences", "x3")]
    if qkv == "together":
        nodes += [op("MatMul", "x3 wqkv", "p1"), op("Add", "bqkv p1", "p2"), op("Reshape", "p2 apart", "p3"),
                  op("Transpose", "p3", "p4", perm=[2, 0, 3, 1, 4]),
                  op("Gather", "p4 first_part", "q", axis=0),
                  op("Gather", "p4 second_part", "k", axis=0), op("Gather", "p4 third_part", "v", axis=0),
                  op("Mul", "q scale", "qs"), op("Transpose", "k", "kt", perm=[0, 1, 3, 2]),
                  op("MatMul", "qs kt", "d")]
    else:  # each by a matrix of its own, scores divided afterwards
        for part in "qkv":
            constants += [weight(f"m{part}", CHANNELS, CHANNELS), weight(f"a{part}", CHANNELS)]
            nodes += [op("MatMul", f"x3 m{part}", f"{part}1"), op("Add", f"{part}1 a{part}", f"{part}2"),
                      op("Reshape", f"{part}2 heads", f"{part}3"),
                      op("Transpose", f"{part}3", part, perm=[0, 2, 1, 3])]
        constants += [number("divisor", SIZE**0.5)]
        nodes += [op("Transpose", "k", "kt", perm=[0, 1, 3, 2]), op("MatMul", "q kt", "d0"),
                  op("Div", "d0 divisor", "d")]
    nodes += [op("Add", "d bias", "e")]
    if masked is None and shift:
        masked = mask(window, shift)
    if masked is not None:
        constants += [number("mask", masked[None, :, None])]
        nodes += [op("Reshape", "e by_window", "e1"), op("Add", "e1 mask", "e2"),
                  op("Reshape", "e2 scores", "e3")]
    nodes += [op("Softmax", "e3" if masked is not None else "e", "a", axis=-1), op("MatMul", "a v", "o1"),
              op("Transpose", "o1", "o2", perm=[0, 2, 1, 3]), op("Reshape", "o2 sequences", "o3"),
              op("MatMul", "o3 wproj", "o4"), op("Add", "bproj o4", "o5"), op("Reshape", "o5 squares", "o6"),
              op("Reshape", "o6 joined", "o7"), op("Transpose", "o7", "o8", perm=[0, 1, 3, 2, 4, 5]),
              op("Reshape", "o8 nhwc", "o9")]
    source = "o9"
    if shift:
        more, cuts = roll("o9", "back", HEIGHT - shift, WIDTH - shift)
        nodes, constants, source = nodes + more, constants + cuts, "back"
    nodes += [op("Reshape", f"{source} tokens", "y1"), op("Add", "t y1", "y2"), *norm("y2", "y3", written_out),
              *mlp("y3", "y4"), op("Add", "y2 y4", "y5"), op("Transpose", "y5", "y6", perm=[0, 2, 1]),
              op("Reshape", "y6 map", "n")]
    save(folder, name, nodes, constants, opset=opset, prefix="window")


def put_by_indices(source, target, box, _shape, _axis):
    """A box made true by ScatterND with the index of each element, as TorchScript writes it."""
    index = np.stack(np.meshgrid(*[np.arange(at, at + n) for at, n in box], indexing="ij"), axis=-1)
    return ([op("ConstantOfShape", f"{target}_shape", f"{target}t", value=TRUE),
             op("ScatterND", f"{source} {target}_index {target}t", target)],
            [number(f"{target}_index", index), number(f"{target}_shape", [n for _, n in box])])


def put_by_axes(source, target, box, shape, axis):
    """The same axis by axis, as torch.export writes it: the last windows of an axis are picked, of these
    the rows of the box, of these its keys are filled; each goes back where it came from."""
    rows, keys = 1 + axis, 3 + axis  # axes of what is picked
    (first_row, n_rows), (first_key, n_keys) = box[2 + axis], box[4 + axis]
    by_rows = [rows, *[i for i in range(5) if i != rows]]
    by_keys = [keys, *[i for i in range(5) if i != keys]]
    filled = [n for i, n in enumerate(shape) if i != axis]
    filled[rows], filled[keys] = n_rows, n_keys
    index = np.full([1 if i == axis else n for i, n in enumerate(shape)], shape[axis] - 1)
    t = target
    constants = [
        number(f"{t}_at", shape[axis] - 1), number(f"{t}_index", index), number(f"{t}_cut", [rows]),
        number(f"{t}_rows", np.arange(first_row, first_row + n_rows)[:, None]),
        number(f"{t}_keys", np.arange(first_key, first_key + n_keys)[:, None]),
        number(f"{t}_filled", [filled[i] for i in by_keys]), number(f"{t}_new", [axis]),
        number(f"{t}_from", [first_row]), number(f"{t}_to", [first_row + n_rows])]
    nodes = [
        op("Gather", f"{source} {t}_at", f"{t}p", axis=axis),
        op("Slice", f"{t}p {t}_from {t}_to {t}_cut", f"{t}s"), op("Transpose", f"{t}s", f"{t}t", perm=by_keys),
        op("ConstantOfShape", f"{t}_filled", f"{t}f", value=TRUE), op("ScatterND", f"{t}t {t}_keys {t}f", f"{t}u"),
        op("Transpose", f"{t}u", f"{t}v", perm=[by_keys.index(i) for i in range(5)]),
        op("Transpose", f"{t}v", f"{t}w", perm=by_rows), op("Transpose", f"{t}p", f"{t}x", perm=by_rows),
        op("ScatterND", f"{t}x {t}_rows {t}w", f"{t}y"),
        op("Transpose", f"{t}y", f"{t}z", perm=[by_rows.index(i) for i in range(5)]),
        op("Unsqueeze", f"{t}z {t}_new", f"{t}a"),
        op("ScatterElements", f"{source} {t}_index {t}a", t, axis=axis)]
    return nodes, constants


def boxes(shape, window, shift, put):
    """A mask as SCUNet makes it: false, and true in boxes of the last windows of an axis, where a query
    and a key lie on different sides of the cut."""
    nodes, constants, mask = [op("ConstantOfShape", "mask_shape", "m0", value=FALSE)], [], "m0"
    sides = [(0, window - shift), (window - shift, shift)]
    for axis in (0, 1):
        for side in (0, 1):
            box = [(0, n) for n in shape]
            box[axis] = (shape[axis] - 1, 1)
            box[2 + axis], box[4 + axis] = sides[side], sides[1 - side]
            more, numbers = put(mask, f"m{axis}{side}", box, shape, axis)
            nodes, constants, mask = nodes + more, constants + numbers, f"m{axis}{side}"
    return [*nodes, op("Reshape", f"{mask} hidden_shape", "hidden")], constants


def heads_first(folder, name, put):
    """A layer of SCUNet: heads before windows, the mask by Where."""
    window, shift, n = 8, 4, 64
    down, across = HEIGHT // window, WIDTH // window
    count = down * across
    constants = [*LINEAR, *NUMBERS, weight("bias", HEADS, 1, 1, n, n), number("infinite", -np.inf),
                 shape("nhwc", 1, HEIGHT, WIDTH, CHANNELS), shape("sequences", 1, count, n, CHANNELS),
                 shape("grid", 1, down, window, across, window, CHANNELS),
                 shape("apart", 1, count, n, 3 * HEADS, SIZE),
                 shape("joined", 1, down, across, window, window, CHANNELS),
                 shape("mask_shape", down, across, window, window, window, window),
                 shape("hidden_shape", 1, 1, count, n, n), shape("thirds", HEADS, HEADS, HEADS)]
    more, cuts = roll("t", "rolled", shift, shift)
    masks, mask_constants = boxes([down, across] + [window] * 4, window, shift, put)
    split = op("Split", "p4 thirds", "q", axis=0)
    split.output.extend(["k", "v"])
    nodes = [op("Transpose", "c", "t", perm=[0, 2, 3, 1]), *more, op("Reshape", "rolled grid", "g"),
             op("Transpose", "g", "gt", perm=[0, 1, 3, 2, 4, 5]), op("Reshape", "gt sequences", "x3"),
             op("MatMul", "x3 wqkv", "p1"), op("Add", "p1 bqkv", "p2"), op("Reshape", "p2 apart", "p3"),
             op("Transpose", "p3", "p4", perm=[3, 0, 1, 2, 4]), split,
             op("Einsum", "q k", "d", equation="hbwpc,hbwqc->hbwpq"), op("Mul", "d scale", "d1"),
             op("Add", "d1 bias", "e"), *masks, op("Where", "hidden infinite e", "e1"),
             op("Softmax", "e1", "a", axis=-1), op("Einsum", "a v", "o1", equation="hbwij,hbwjc->hbwic"),
             op("Transpose", "o1", "o2", perm=[1, 2, 3, 0, 4]), op("Reshape", "o2 sequences", "o3"),
             op("MatMul", "o3 wproj", "o4"), op("Add", "o4 bproj", "o5"), op("Reshape", "o5 joined", "o7"),
             op("Transpose", "o7", "o8", perm=[0, 1, 3, 2, 4, 5]), op("Reshape", "o8 nhwc", "o9")]
    back, back_cuts = roll("o9", "back", HEIGHT - shift, WIDTH - shift)
    nodes += [*back, op("Add", "t back", "sum"), op("Transpose", "sum", "n", perm=[0, 3, 1, 2])]
    save(folder, name, nodes, [*constants, *cuts, *mask_constants, *back_cuts], opset=17, prefix="window")


def areas(folder, name, height, width, count):
    """Attention of YOLO12: each of `count` areas of a map by itself, query, key and value of a head side by side."""
    heads, n = 2, height * width // count
    size = CHANNELS // heads
    constants = [weight("wqkv", 3 * CHANNELS, CHANNELS, 1, 1), weight("bqkv", 3 * CHANNELS),
                 weight("wpe", CHANNELS, 1, 7, 7), number("scale", size**-0.5), shape("thirds", size, size, size),
                 shape("flat", 1, 3 * CHANNELS, -1), shape("split", count, n, heads, 3 * size),
                 shape("all", 1, height * width, CHANNELS), shape("nhwc", 1, height, width, CHANNELS)]
    split = op("Split", "p4 thirds", "q", axis=2)
    split.output.extend(["k", "v"])
    nodes = [op("Conv", "c wqkv bqkv", "p1"), op("Reshape", "p1 flat", "p2"),
             op("Transpose", "p2", "p2t", perm=[0, 2, 1]), op("Reshape", "p2t split", "p3"),
             op("Transpose", "p3", "p4", perm=[0, 2, 3, 1]), split, op("Mul", "q scale", "qs"),
             op("Transpose", "qs", "qt", perm=[0, 1, 3, 2]), op("MatMul", "qt k", "d"),
             op("Softmax", "d", "a", axis=-1), op("Transpose", "a", "at", perm=[0, 1, 3, 2]),
             op("MatMul", "v at", "o1")]
    for source, target in (("o1", "o"), ("v", "w")):
        nodes += [op("Transpose", source, f"{target}2", perm=[0, 3, 1, 2]),
                  op("Reshape", f"{target}2 all", f"{target}3"), op("Reshape", f"{target}3 nhwc", f"{target}4"),
                  op("Transpose", f"{target}4", target, perm=[0, 3, 1, 2])]
    nodes += [op("Conv", "w wpe", "pe", group=CHANNELS, pads=[3, 3, 3, 3]), op("Add", "o pe", "s1"),
              op("Add", "c s1", "n")]
    save(folder, name, nodes, constants, opset=13, prefix="area")


def wide(folder, name, height, width, keys):
    """Attention of YOLO11 and YOLOv10: query, key and value of a head side by side, values of another size."""
    heads = 2
    size = CHANNELS // heads
    of_head = 2 * keys + size
    constants = [weight("wqkv", heads * of_head, CHANNELS, 1, 1), weight("bqkv", heads * of_head),
                 weight("wpe", CHANNELS, 1, 3, 3), number("scale", keys**-0.5), shape("parts", keys, keys, size),
                 shape("split", 1, heads, of_head, height * width), shape("map", 1, CHANNELS, height, width)]
    split = op("Split", "p2 parts", "q", axis=2)
    split.output.extend(["k", "v"])
    nodes = [op("Conv", "c wqkv bqkv", "p1"), op("Reshape", "p1 split", "p2"), split, op("Mul", "q scale", "qs"),
             op("Transpose", "qs", "qt", perm=[0, 1, 3, 2]), op("MatMul", "qt k", "d"),
             op("Softmax", "d", "a", axis=-1), op("Transpose", "a", "at", perm=[0, 1, 3, 2]),
             op("MatMul", "v at", "o1"), op("Reshape", "o1 map", "o"), op("Reshape", "v map", "w"),
             op("Conv", "w wpe", "pe", group=CHANNELS, pads=[1, 1, 1, 1]), op("Add", "o pe", "s1"),
             op("Add", "c s1", "n")]
    save(folder, name, nodes, constants, opset=13, prefix="area")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    layer(folder, "plain")
    layer(folder, "shifted", shift=4)
    layer(folder, "shifted_by_one", window=4, shift=1)
    layer(folder, "sizes_from_shapes", sizes="shapes", shift=4)
    layer(folder, "parts_apart", qkv="apart", window=4, shift=2)
    layer(folder, "norm_written_out", opset=13, written_out=True, shift=4)
    areas(folder, "whole", HEIGHT, WIDTH, 1)
    areas(folder, "of_rows", HEIGHT, WIDTH, 4)
    areas(folder, "other_cut_in_a_row", HEIGHT, WIDTH, 64)
    areas(folder, "large", 132, 66, 2)  # more pixels than a thread takes alone
    wide(folder, "wide", HEIGHT, WIDTH, 4)
    wide(folder, "narrow", HEIGHT, WIDTH, 11)
    wide(folder, "large_wide", 132, 66, 3)
    heads_first(folder, "heads_first", put_by_indices)
    heads_first(folder, "heads_first_put_back", put_by_axes)
    layer(folder, "other_mask", shift=4, masked=mask(8, 3))
    layer(folder, "other_without_mask", shift=4, masked=np.zeros((12, 64, 64), np.float32))


if __name__ == "__main__":
    main()
