#!/usr/bin/env python3
"""Writes the ranges of the tensors of the built-in networks on bytes, such as mobilenet_v2:int8.

    make_builtin_ranges.py RFEXEC > rfexec/builtin/builtin_ranges.c
    make_builtin_ranges.py RFEXEC --check rfexec/builtin/builtin_ranges.c [NETWORK ...]

The ranges are what 'rfexec quantize' counts on pictures with sharp edges, full contrast and all
colours, and on synthetic: pictures, rounded outwards to three decimal digits. --check compares the
lines of a file for all networks, or for those that are named. Ranges are the same on all processors
with fused multiply-add.
"""

import argparse
import decimal
import json
import pathlib
import random
import subprocess
import sys
import tempfile

NETWORKS = ("mobilenet_v2", "resnet18", "resnet50", "unet", "fsrcnn", "deeplab_v3", "yolov8n")
# yolov8n has one tensor more at sizes that are no multiples of 32.
SIZES = ((256, 256), (229, 243))
PICTURES = 3

HEAD = """/* The ranges of the tensors of built-in networks on bytes. Written by
 * tools/scripts/make_builtin_ranges.py. */
#include "rfexec/builtin/builtin_ranges.h"

#include <stddef.h>

/* clang-format off */
"""


def draw(path, rows, columns, seed):
    """A picture of filled rectangles of all sizes and colours, one over the other, as PPM."""
    number = random.Random(seed).random  # the numbers of random() never change
    pixels = [[(0, 0, 0)] * columns for _ in range(rows)]
    for k in range(400):
        most = 1 + int((rows / 2) * (1 - k / 400) ** 2)
        height, width = 1 + int(number() * most), 1 + int(number() * most)
        top, left = int(number() * rows), int(number() * columns)
        colour = tuple(min(255, int(number() * 256)) for _ in range(3))
        if k % 4 == 0:
            colour = (0, 0, 0) if k % 8 == 0 else (255, 255, 255)
        for y in range(top, min(top + height, rows)):
            for x in range(left, min(left + width, columns)):
                pixels[y][x] = colour
    data = bytes(value for row in pixels for pixel in row for value in pixel)
    path.write_bytes(b"P6\n%d %d\n255\n" % (columns, rows) + data)


def pictures(folder, rows, columns):
    """The file that lists the pictures of a size."""
    lines = []
    for k in range(PICTURES):
        path = folder / f"{rows}x{columns}-{k}.ppm"
        draw(path, rows, columns, k)
        lines += [str(path), f"synthetic:{rows}x{columns}:{k}"]
    listed = folder / f"{rows}x{columns}.txt"
    listed.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return listed


def outwards(value, rounding):
    """Three decimal digits."""
    context = decimal.Context(prec=3, rounding=rounding)
    return float(context.create_decimal_from_float(value))


def literal(value):
    text = repr(value)
    return text + ("f" if "." in text or "e" in text else ".0f")


def ranges(program, network, lists, folder):
    """{tensor: (lo, hi)} in the order of the network."""
    found = {}
    for listed in lists:
        counts = folder / "counts.json"
        done = subprocess.run([program, "quantize", network, "--images", str(listed), "--part", "1/1",
                               "-o", str(counts)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"rfexec quantize {network}: exit code {done.returncode}\n{done.stderr}")
        for name, tensor in json.loads(counts.read_text(encoding="utf-8"))["tensors"].items():
            lo, hi = tensor["range"]
            old = found.get(name, (lo, hi))
            found[name] = min(lo, old[0]), max(hi, old[1])
    return {name: (outwards(lo, decimal.ROUND_FLOOR), outwards(hi, decimal.ROUND_CEILING))
            for name, (lo, hi) in found.items()}


def table(program, network, lists, folder):
    """The lines of a network's table."""
    lines = [f"static const struct rfx_builtin_range {network}[] = {{"]
    lines += [f'    {{"{name}", {literal(lo)}, {literal(hi)}}},'
              for name, (lo, hi) in ranges(program, network, lists, folder).items()]
    return lines + ["};"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--check", type=pathlib.Path, metavar="FILE")
    parser.add_argument("networks", nargs="*", help="of the check (all)")
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        lists = [pictures(folder, *size) for size in SIZES]
        tables = {network: "\n".join(table(options.program, network, lists, folder)) + "\n"
                  for network in options.networks or NETWORKS}
    if options.check:
        text = options.check.read_text(encoding="utf-8")
        other = [network for network in tables if tables[network] not in text]
        for network in other:
            print(f"{options.check}: the ranges of {network} are others than those measured")
        return 1 if other else 0
    print(HEAD)
    for lines in tables.values():
        print(lines)
    print("#define ROW(network) {#network, sizeof network / sizeof network[0], network}")
    print("const struct rfx_builtin_ranges rfx_builtin_ranges[] = {")
    for network in tables:
        print(f"    ROW({network}),")
    print("    {NULL, 0, NULL},\n};")
    return 0


if __name__ == "__main__":
    sys.exit(main())
