"""Draws docs/figures/seams.png: a network's answer over the picture, and that of tiles without halos.

    sh python/tests/run.sh build          # installs the Python package, once
    build/python-venv/bin/python tools/scripts/draw_seams.py build docs/figures/seams.png

The demo's network on a picture of the demo's kind; left the whole picture (or any tiles of rfexec's, which have
its bits), in the middle 3 x 4 tiles that are run one by one and put side by side; bright: the largest of the
channels. Right: by how much they differ, on a logarithmic scale from 1e-6, clear, to 1, yellow."""

import os
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import rfexec

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS, COLUMNS, TILE, STRIDE, SEED = 480, 640, 160, 8, 29
HEAT = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], float)
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def samples_of(values):
    """[rows, columns, 3] of 0 to 255 from the network's input."""
    return (values.transpose(1, 2, 0) * STD + MEAN) * 255


def input_of(program, picture, work):
    """What the network reads of a picture: the first map of a run."""
    path = os.path.join(work, "in.npy")
    model = os.path.join(TOP, "data", "defect_net.onnx")
    subprocess.run([program, "run", model, picture, "--dump", "image=" + path], check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(path)[0]


def heat(net, values):
    (name,) = [output.name for output in net.outputs]
    return net.run(np.ascontiguousarray(values))[name][0].max(axis=0)


def tiles(model, values):
    net = rfexec.open(model, size=(TILE, TILE))
    rows = [[heat(net, values[:, y : y + TILE, x : x + TILE]) for x in range(0, COLUMNS, TILE)]
            for y in range(0, ROWS, TILE)]
    return np.block(rows)


def panel(samples, values):
    shares = values.repeat(STRIDE, axis=0).repeat(STRIDE, axis=1)[..., None]
    at = shares * (len(HEAT) - 1)
    low = np.minimum(at.astype(int), len(HEAT) - 2)[..., 0]
    colour = HEAT[low] + (at - low[..., None]) * (HEAT[low + 1] - HEAT[low])
    return samples + 0.8 * shares * (colour - samples)


def write_png(path, pixels):
    rows, columns, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def main():
    build, out = sys.argv[1:] if len(sys.argv) == 3 else sys.exit(__doc__)
    model = os.path.join(TOP, "data", "defect_net.onnx")
    with tempfile.TemporaryDirectory() as work:
        picture = os.path.join(work, "part.png")
        subprocess.run([os.path.join(build, "tools", "demo", "rfx-make-inspection-image"),
                        f"{ROWS}x{COLUMNS}", picture, "--truth", os.path.join(work, "truth.csv"),
                        "--seed", str(SEED)], check=True)
        values = input_of(os.path.join(build, "rfexec"), picture, work)
    whole = heat(rfexec.open(model, size=(ROWS, COLUMNS)), values)
    naive = tiles(model, values)
    print("%.1f %% of the largest channels differ, by %.3f at most"
          % (100 * (whole != naive).mean(), abs(whole - naive).max()))
    with np.errstate(divide="ignore"):
        decades = np.clip(np.log10(abs(whole - naive)) / 6 + 1, 0, 1)
    gap = np.full((ROWS, 16, 3), 255.0)
    parts = [panel(samples_of(values), whole), gap, panel(samples_of(values), naive), gap,
             panel(samples_of(values), decades)]
    pixels = np.concatenate(parts, axis=1)
    pixels = pixels.reshape(ROWS // 2, 2, -1, 2, 3).mean(axis=(1, 3))
    write_png(out, np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


if __name__ == "__main__":
    main()
