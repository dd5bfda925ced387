"""PNG files of 8 bits, read and written with Python alone."""
import struct
import zlib


def read_png(data, channels=3):
    """Width, height and pixels of a picture without interlacing; channels: 3 (RGB) or 4 (RGBA)."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, n = 8, b"", channels
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0]
        if kind == b"IHDR":
            w, h, bits, colour = struct.unpack(">IIBB", body[:10])
            assert (bits, colour) == (8, 2 if channels == 3 else 6)
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    raw, rows, before = zlib.decompress(packed), [], bytes(n * w)
    for y in range(h):
        line = bytearray(raw[y * (n * w + 1) + 1 : (y + 1) * (n * w + 1)])
        for i in range(n * w):
            a, b, c = (line[i - n] if i >= n else 0), before[i], (before[i - n] if i >= n else 0)
            paeth = min((a, b, c), key=lambda v: abs(a + b - c - v))
            line[i] = line[i] + (0, a, b, (a + b) // 2, paeth)[raw[y * (n * w + 1)]] & 255
        rows.append(bytes(line))
        before = line
    return w, h, rows


def write_png(path, w, h, rows):
    """Writes RGB pixels."""
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, body in chunks:
            file.write(struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)))
