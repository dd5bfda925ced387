"""Small networks with attention as exporters write it, for check_models.py.

    attention_models.py FOLDER

Each is a convolution of 3 to 16 channels, attention of every pixel to every pixel, and a convolution.
"""

import pathlib
import sys

from norm_models import CHANNELS, number, op, save, weight

HEADS = 4


def maps():
    """Queries, keys and values of one head, by 1x1 convolutions, as [1, 16, pixels]."""
    nodes = []
    for name in "qkv":
        nodes += [op("Conv", f"g w{name} b{name}", f"{name}m", kernel_shape=[1, 1]),
                  op("Reshape", f"{name}m flat", name)]
    constants = [weight("s", CHANNELS), weight("b", CHANNELS), number("flat", [0, CHANNELS, -1]),
                 number("scale", CHANNELS ** -0.5)]
    for name in "qkv":
        constants += [weight(f"w{name}", CHANNELS, CHANNELS, 1, 1), weight(f"b{name}", CHANNELS)]
    return [op("GroupNormalization", "c s b", "g", num_groups=4), *nodes], constants


def back_to_map(tokens):
    """[1, 16, pixels] as the map that `c` is, and added to it."""
    return [op("Shape", "c", "size"), op("Reshape", f"{tokens} size", "map"), op("Add", "map c", "n")]


def one_head(folder):
    nodes, constants = maps()
    scores = [*nodes, op("Transpose", "q", "qt", perm=[0, 2, 1]), op("MatMul", "qt k", "d"),
              op("Mul", "d scale", "e"), op("Softmax", "e", "p", axis=-1)]
    # Values times transposed weights, as the decoders of latent diffusion have it.
    save(folder, "values_first", [
        *scores, op("Transpose", "p", "pt", perm=[0, 2, 1]), op("MatMul", "v pt", "o"),
        *back_to_map("o")], constants, opset=21, prefix="attention")
    save(folder, "weights_first", [
        *scores, op("Transpose", "v", "vt", perm=[0, 2, 1]), op("MatMul", "p vt", "ot"),
        op("Transpose", "ot", "o", perm=[0, 2, 1]), *back_to_map("o")], constants, opset=21,
        prefix="attention")


def heads():
    """Queries, keys and values of four heads, from tokens by matrices: [1, 4, pixels, 4]."""
    nodes = [op("Reshape", "c flat", "f"), op("Transpose", "f", "t", perm=[0, 2, 1])]
    for name in "qkv":
        nodes += [op("MatMul", f"t w{name}", f"{name}1"), op("Add", f"{name}1 b{name}", f"{name}2"),
                  op("Reshape", f"{name}2 split", f"{name}3"),
                  op("Transpose", f"{name}3", name, perm=[0, 2, 1, 3])]
    constants = [number("flat", [0, CHANNELS, -1]), number("split", [0, -1, HEADS, CHANNELS // HEADS]),
                 number("join", [0, -1, CHANNELS]), number("scale", (CHANNELS // HEADS) ** -0.25)]
    for name in "qkv":
        constants += [weight(f"w{name}", CHANNELS, CHANNELS), weight(f"b{name}", CHANNELS)]
    return nodes, constants


def from_heads():
    return [op("Transpose", "o4", "o3", perm=[0, 2, 1, 3]), op("Reshape", "o3 join", "ot"),
            op("Transpose", "ot", "o", perm=[0, 2, 1]), *back_to_map("o")]


def many_heads(folder):
    nodes, constants = heads()
    # As torch's scaled_dot_product_attention is exported: both operands scaled, then a bias a head.
    save(folder, "heads", [
        *nodes, op("Transpose", "k", "kt", perm=[0, 1, 3, 2]), op("Mul", "q scale", "qs"),
        op("Mul", "kt scale", "ks"), op("MatMul", "qs ks", "d"), op("Add", "d bias", "e"),
        op("Softmax", "e", "p", axis=-1), op("MatMul", "p v", "o4"), *from_heads()],
        [*constants, weight("bias", HEADS, 1, 1)], prefix="attention")
    save(folder, "operator", [
        *nodes, op("Attention", "q k v", "o4"), *from_heads()], constants, opset=23, prefix="attention")
    tokens = [op("Transpose", "o1", "o", perm=[0, 2, 1]), *back_to_map("o")]
    projected = [node for node in nodes if node.output[0] not in
                 {f"{name}{step}" for name in "qkv" for step in ("3", "")}]
    save(folder, "operator_on_tokens", [
        *projected, op("Attention", "q2 k2 v2", "o1", q_num_heads=HEADS, kv_num_heads=HEADS, scale=0.3),
        *tokens], constants, opset=23, prefix="attention")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    one_head(pathlib.Path(sys.argv[1]))
    many_heads(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
