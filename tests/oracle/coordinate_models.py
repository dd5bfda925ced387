"""Small networks with coordinates that the file makes from the image's size, for check_models.py.

    coordinate_models.py FOLDER

Channels of coordinates (CoordConv), grids of warps, places of cells, encodings of positions.
"""

import pathlib
import sys

import numpy as np

from norm_models import CHANNELS, number, op, save, weight

SIZES = [
    op("Shape", "c", "shape"), op("Gather", "shape two", "h"), op("Gather", "shape three", "w"),
    op("Range", "zero w one", "ix"), op("Range", "zero h one", "iy"),
    op("Unsqueeze", "h front", "hd"), op("Unsqueeze", "w front", "wd"),
    op("Cast", "ix", "fx", to=1), op("Cast", "iy", "fy", to=1)]
GRIDS = [
    op("Concat", "ones hd wd", "map", axis=0),
    op("Unsqueeze", "fx leading", "xl"), op("Expand", "xl map", "gx"),
    op("Unsqueeze", "fy beside", "yl"), op("Expand", "yl map", "gy")]
NUMBERS = [number(name, value) for name, value in {
    "zero": 0, "one": 1, "two": 2, "three": 3, "front": [0], "ones": [1, 1], "leading": [0, 1, 2],
    "beside": [0, 1, 3], "small": 0.03, "half": 0.5, "four": [4], "minus": [-1], "last": [3],
    "far": [-2**62], "cells": [1, CHANNELS, -1], "pixels": [-1, 1], "middle": 20.0}.items()]


def keep(folder, name, nodes, constants=(), opset=16):
    save(folder, name, [*SIZES, *GRIDS, *nodes], [*NUMBERS, *constants], opset,
         prefix="coordinates")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    keep(folder, "channels", [
        op("Mul", "gx small", "a"), op("Neg", "gy", "m"), op("Mul", "m small", "b"),
        op("Slice", "a minus far last minus", "r"), op("Concat", "c a b r", "d", axis=1),
        op("Conv", "d k", "n", pads=[1] * 4)], [weight("k", CHANNELS, CHANNELS + 3, 3, 3)])
    keep(folder, "radius", [
        op("Sub", "gx middle", "dx"), op("Sub", "gy middle", "dy"), op("Mul", "dx dx", "x2"),
        op("Mul", "dy dy", "y2"), op("Add", "x2 y2", "r2"), op("Sqrt", "r2", "r"),
        op("Mul", "r small", "s"), op("Add", "c s", "n")])
    keep(folder, "encoding", [
        op("Mul", "gx f", "px"), op("Mul", "gy f", "py"), op("Sin", "px", "sx"),
        op("Cos", "py", "cy"), op("Concat", "sx cy", "e", axis=1), op("Conv", "c k", "d"),
        op("Add", "e d", "m"), op("Conv", "m l", "n")],
        [number("f", 0.1 * np.arange(1, 9, dtype=np.float32).reshape(1, 8, 1, 1)),
         weight("k", 16, CHANNELS, 1, 1), weight("l", CHANNELS, 16, 1, 1)])
    keep(folder, "warp", [
        op("Conv", "c k", "o", pads=[1] * 4), op("Transpose", "o", "ol", perm=[0, 2, 3, 1]),
        op("Concat", "gx gy", "g", axis=1), op("Transpose", "g", "gl", perm=[0, 2, 3, 1]),
        op("Add", "gl ol", "p"), op("Mul", "p small", "q"), op("GridSample", "c q", "n")],
        [weight("k", 2, CHANNELS, 3, 3)])
    keep(folder, "cells", [
        op("Reshape", "gx pixels", "px"), op("Reshape", "gy pixels", "py"),
        op("Concat", "px py", "p", axis=1), op("Mul", "p small", "s"),
        op("Tile", "s times", "t"), op("Transpose", "t", "tt", perm=[1, 0]),
        op("Reshape", "c cells", "d"), op("Add", "d tt", "e"),
        op("Concat", "ones0 hd wd", "back", axis=0), op("Reshape", "e back", "n")],
        [number("times", [1, CHANNELS // 2]), number("ones0", [1, CHANNELS])])


if __name__ == "__main__":
    main()
