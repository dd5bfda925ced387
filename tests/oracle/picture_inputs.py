"""Pictures as Pillow and tifffile write them: what reaches the network must be their samples.

The network is a 1x1 convolution that gives each channel back, so outputs are inputs, to the bit.
"""

import subprocess

import numpy as np
import onnx
import tifffile
from onnx import TensorProto, helper, numpy_helper
from picture_checks import check

AS_STORED = ["--scale", "1", "--mean", "0", "--std", "1"]


def make_network(channels):
    """Gives its input back."""
    shape = [1, channels, "h", "w"]
    weights = np.eye(channels, dtype=np.float32).reshape(channels, channels, 1, 1)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "k"], ["y"])], "same",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(weights, "k")])
    path = f"same{channels}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8),
              path)
    return path


def read(program, picture, channels, *args):
    """What reaches a network of so many channels, or None, and what was said."""
    done = subprocess.run([program, "run", make_network(channels), picture, *AS_STORED, *args, "-o",
                           "reached.npy"], capture_output=True, text=True, check=False)
    return np.load("reached.npy")[0] if done.returncode == 0 else None, done.stderr


def scaled(pixels):
    """Samples on the scale that pictures have."""
    return pixels / np.float32(257) if pixels.dtype == "u2" else pixels.astype("f4")


def reaches(program, what, picture, wanted, *args, says=""):
    """The picture's samples are `wanted` (channels, rows, columns), and the messages say so."""
    got, words = read(program, picture, len(wanted), *args)
    check(got is not None and np.array_equal(got, wanted), f"{what}: {words.strip()}")
    check(says in words, f"{what}: '{says}' is not in '{words.strip()}'")


def refused(program, what, picture, channels, says, *args):
    got, words = read(program, picture, channels, *args)
    check(got is None and says in words, f"{what}: not refused with '{says}': {words.strip()}")


def check_pages(program):
    """Channels, slices and times of OME-TIFF, ImageJ and tifffile's own files."""
    numbers = np.random.default_rng(3)
    for kind in ("u1", "u2", "f4"):
        for options in ({}, {"tile": (16, 16)}, {"compression": "zlib", "rowsperstrip": 8},
                        {"bigtiff": True}):
            what = f"pages of {kind}, {options}"
            pixels = numbers.uniform(0, 250, (3, 37, 53)).astype(kind)
            for name, more in (("pages.ome.tif", {}), ("pages.tif", {"imagej": True}),
                               ("pages.tif", {})):
                if "imagej" in more and "bigtiff" in options:
                    continue
                for axes in ("CYX", "ZYX", "TYX"):
                    tifffile.imwrite(name, pixels, photometric="minisblack",
                                     metadata={"axes": axes}, **options, **more)
                    if axes == "CYX":
                        reaches(program, f"{what}, {axes}", name, scaled(pixels))
                    else:
                        refused(program, f"{what}, {axes}", name, 3, f"axes {axes}")
                    reaches(program, f"{what}, {axes}, chosen", name, scaled(pixels[[2, 0]]),
                            "--channels", "3,1")
                    reaches(program, f"{what}, {axes}, one", name, scaled(pixels[1:2]), "--page",
                            "1")
            tifffile.imwrite("pages.tif", pixels, photometric="minisblack", metadata=None, **options)
            reaches(program, what, "pages.tif", scaled(pixels), says="read as bands")


def check_all(program):
    check_pages(program)
