#!/usr/bin/env python3
"""Measures what one more pass over a picture takes that can only be read row by row, per sample.

    measure_decoding.py build/rfexec [--side N]

Writes a picture of N x N pixels (2048) with shapes and noise as PNG, JPEG, and TIFF in strips by deflate and LZW, runs a
network of one ReLU over each in 1 and in 17 column strips with one thread, and prints the picoseconds of processor
time that a further pass takes for each sample: the least of five differences. These are the numbers of the table
in rfexec/image/decoding.c. Needs Pillow and numpy.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

import numpy
from PIL import Image

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 2))
sys.path.insert(0, os.path.join(ROOT, "tests", "acceptance"))

from onnx_bytes import node, write_model  # noqa: E402

STRIPS, ROUNDS = 17, 5


def picture(side):
    """Waves of several lengths, edges, and noise of some grey levels: as photographs, neither flat nor random."""
    y, x = numpy.mgrid[0:side, 0:side].astype(numpy.float32)
    waves = 60 * numpy.sin(x / 37) * numpy.cos(y / 53) + 30 * numpy.sin((x + y) / 11)
    edges = 40 * ((x // 97 + y // 71) % 2)
    noise = numpy.random.default_rng(1).normal(0, 4, (side, side, 3))
    values = (waves + edges)[..., None] * numpy.array([1.0, 0.8, 0.6]) + noise + 110
    return Image.fromarray(numpy.clip(values, 0, 255).astype(numpy.uint8))


def seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--side", type=int, default=2048, metavar="N")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "relu.onnx")
        write_model(model, [node("Relu", ["x"], "y")], ["y"])
        image = picture(args.side)
        files = {"PNG": ("a.png", {}), "JPEG": ("a.jpg", {"quality": 90}),
                 "TIFF deflate": ("d.tif", {"compression": "tiff_adobe_deflate"}),
                 "TIFF LZW": ("l.tif", {"compression": "tiff_lzw"}), "TIFF PackBits": ("p.tif", {"compression": "packbits"})}
        for name, (file, options) in files.items():
            path = os.path.join(folder, file)
            image.save(path, **options)
            run = [args.program, "run", model, path, "--threads", "1", "--bands", "16"]
            more = min(seconds([*run, "--strips", str(STRIPS)]) - seconds(run) for _ in range(ROUNDS))
            print(f"{name:14} {1e12 * more / (STRIPS - 1) / (3 * args.side**2):8.0f} ps a sample, "
                  f"{os.path.getsize(path) / (3 * args.side**2):.2f} bytes a sample")


if __name__ == "__main__":
    main()
