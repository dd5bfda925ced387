#!/usr/bin/env python3
"""Memory and time of answers of a 20,000 x 20,000 label map, inside 64 MiB.

    regions_memory.py BUILD/rfexec [--side 20000] [--memory 64MiB] [--work DIR]

Makes label maps as PNG files: about 100,000 discs of four classes, a comb of one-pixel teeth that are one
region, and a spiral of one pixel's width through the whole map, and a network that passes samples through as
labels. Runs --regions, and on the discs --points and --summary, inside the budget; prints a table of what was
found, peak memory and time. Regions must be as many as were made, and a run must stay inside the budget. Needs
numpy and onnx, such as build/oracle-venv has. Takes two minutes and 500 MB of memory, to make the maps.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper


def write_png(path, labels):
    def chunk(kind, data):
        file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))

    h, w = labels.shape
    packer = zlib.compressobj(1)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 0, 0, 0, 0))
        for row in labels:
            data = packer.compress(b"\0" + row.tobytes())
            if data:
                chunk(b"IDAT", data)
        chunk(b"IDAT", packer.flush())
        chunk(b"IEND", b"")


def discs(labels):
    """Draws discs that do not meet; returns their number."""
    step, reach = 63, 30
    rng = np.random.default_rng(1)
    y, x = np.mgrid[-reach:reach + 1, -reach:reach + 1]
    middles = range(step // 2, len(labels) - reach, step)
    for row in middles:
        for column in middles:
            disc = y * y + x * x <= rng.integers(5, 28) ** 2
            labels[row - reach:row + reach + 1, column - reach:column + reach + 1][disc] = rng.integers(1, 5)
    return len(middles) ** 2


def comb(labels):
    labels[:, ::2] = 1
    labels[-1] = 1
    return 1


def spiral(labels):
    """Draws a line that turns inward and is two pixels away from its last turn."""
    top, left, bottom, right = 0, 0, len(labels) - 1, len(labels) - 1
    begin = 0
    while top <= bottom and left <= right:
        labels[top, begin:right + 1] = 1
        labels[top:bottom + 1, right] = 1
        labels[bottom, left:right + 1] = 1
        if top + 2 > bottom:
            break
        labels[top + 2:bottom + 1, left] = 1
        begin = left
        top, left, bottom, right = top + 2, left + 2, bottom - 2, right - 2
    return 1


def make_network(path):
    shape = [1, 1, "h", "w"]
    nodes = [helper.make_node("Conv", ["x", "k"], ["c"]), helper.make_node("Cast", ["c"], ["y"], to=TensorProto.UINT8)]
    graph = helper.make_graph(nodes, "through", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.UINT8, shape)],
                              [helper.make_tensor("k", TensorProto.FLOAT, [1, 1, 1, 1], [1.0])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def run(program, work, name, options, memory):
    """Returns (found, bytes, seconds, bytes of the file)."""
    kind, file = options[0][2:], work / f"{name}{options[1]}"
    command = [program, "run", work / "through.onnx", work / f"{name}.png", "--scale", "raw", "--max-pixels",
               "1000000000", "--memory", memory, options[0], file, *options[2:], "--json"]
    begin = time.time()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"FAILED: {name} {kind}: exit {done.returncode}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    return report[kind]["count"], report["measured"]["peak_rss_bytes"], time.time() - begin, file.stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--side", type=int, default=20000)
    parser.add_argument("--memory", default="64MiB")
    parser.add_argument("--work", type=pathlib.Path, help="folder that keeps the maps and answers; default: none")
    args = parser.parse_args()
    if args.work is not None:
        args.work.mkdir(exist_ok=True)
        return measure(args)
    with tempfile.TemporaryDirectory() as folder:
        args.work = pathlib.Path(folder)
        return measure(args)


def measure(args):
    make_network(args.work / "through.onnx")
    regions = ["--regions", ".geojson"]
    more = [["--points", ".csv", "--threshold", "0", "--distance", "20"], ["--summary", ".json"]]
    wrong = 0
    print(f"| map of {args.side} x {args.side} | answer | found | peak | seconds | file |\n|---|---|---|---|---|---|")
    for draw in (discs, comb, spiral):
        labels = np.zeros((args.side, args.side), np.uint8)
        n = draw(labels)
        write_png(args.work / f"{draw.__name__}.png", labels)
        del labels
        for options in [regions] + (more if draw is discs else []):
            found, peak, seconds, size = run(args.program, args.work, draw.__name__, options, args.memory)
            print(f"| {draw.__name__} | {options[0]} | {found:,} | {peak / 2**20:.1f} MiB | {seconds:.1f} | "
                  f"{size / 2**20:.1f} MiB |", flush=True)
            wrong += options is regions and found != n
    print("all regions were found inside the budget" if wrong == 0 else f"FAILED: {wrong} maps")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
