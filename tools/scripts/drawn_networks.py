"""What the scripts that export detectors with random weights share."""

import argparse
import pathlib

import numpy as np
from torch import nn


def drawn_image(height, width):
    """An image of 0..1 with squares of all sizes, as 1 x 3 x height x width."""
    rng = np.random.default_rng(height * width)
    image = np.zeros((3, height, width), np.float32)
    for side in (4, 8, 16, 32):
        squares = rng.random((3, height // side + 1, width // side + 1), dtype=np.float32)
        image += np.kron(squares, np.ones((1, side, side), np.float32))[:, :height, :width]
    return image[None] / 4


def set_norms(model, image):
    """Sets the statistics of every batch norm to those of one image."""
    norms = [part for part in model.modules() if isinstance(part, nn.BatchNorm2d)]
    kept = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
    model.train()
    model(image)
    model.eval()
    for norm, momentum in zip(norms, kept):
        norm.momentum = momentum


def export_named(description, networks, export):
    """The command line of such a script: `FOLDER [NAME ...]`, all networks without a name."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or networks:
        export(name, args.folder / f"{name}.onnx")
        print(args.folder / f"{name}.onnx", flush=True)
