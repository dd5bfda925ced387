"""Pictures of random samples in the forms that rfexec reads, written without any library."""

import os
import struct
import subprocess
import zlib

KINDS = ["png", "grey.png", "tif", "float.tif", "npy", "ppm", "jpg"]


def png(path, rng, rows, columns, channels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2 if channels == 3 else 0, 0, 0, 0)
    lines = b"".join(b"\0" + rng.randbytes(columns * channels) for _ in range(rows))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 1)) +
                   chunk(b"IEND", b""))


def floats(rng, count):
    return struct.pack(f"<{count}f", *(rng.uniform(-2, 2) for _ in range(count)))


def tiff(path, rng, rows, columns, sample_bytes):
    """RGB in strips of random height, compressed or not; samples of 1 byte or of 4 (floats)."""
    strip_rows = rng.randint(1, rows)
    compressed = rng.random() < 0.5
    data, offsets, counts = b"", [], []
    for first in range(0, rows, strip_rows):
        samples = min(strip_rows, rows - first) * columns * 3
        strip = rng.randbytes(samples) if sample_bytes == 1 else floats(rng, samples)
        strip = zlib.compress(strip, 1) if compressed else strip
        offsets.append(8 + len(data))
        counts.append(len(strip))
        data += strip + b"\0" * (len(strip) % 2)
    tables = 8 + len(data)
    n = len(offsets)
    lists = struct.pack(f"<{2 * n}I3H3H", *offsets, *counts, *[8 * sample_bytes] * 3,
                        *[3 if sample_bytes == 4 else 1] * 3)

    def several(tag, kind, values, where):
        """Values that fit into the entry stand there."""
        return struct.pack("<HHII", tag, kind, len(values), values[0] if len(values) == 1 else tables + where)
    entries = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in
               ((256, columns), (257, rows), (259, 8 if compressed else 1), (262, 2), (277, 3), (278, strip_rows))]
    entries += [struct.pack("<HHII", 258, 3, 3, tables + 8 * n), several(273, 4, offsets, 0),
                several(279, 4, counts, 4 * n), struct.pack("<HHII", 339, 3, 3, tables + 8 * n + 6)]
    entries.sort(key=lambda entry: struct.unpack("<H", entry[:2]))
    with open(path, "wb") as file:
        file.write(b"II*\0" + struct.pack("<I", tables + len(lists)) + data + lists +
                   struct.pack("<H", len(entries)) + b"".join(entries) + b"\0\0\0\0")


def npy(path, rng, rows, columns):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (3, {rows}, {columns}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                   floats(rng, 3 * rows * columns))


def write(path, kind, rng, rows, columns, jpeg_maker):
    if kind in ("png", "grey.png"):
        png(path, rng, rows, columns, 3 if kind == "png" else 1)
    elif kind in ("tif", "float.tif"):
        tiff(path, rng, rows, columns, 1 if kind == "tif" else 4)
    elif kind == "npy":
        npy(path, rng, rows, columns)
    elif kind == "ppm":
        with open(path, "wb") as file:
            file.write(f"P6 {columns} {rows} 255\n".encode() + rng.randbytes(3 * rows * columns))
    else:
        subprocess.run([os.path.abspath(jpeg_maker), "jpeg", f"{rows}x{columns}", path], check=True)
