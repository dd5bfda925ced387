"""Pages, bands, orientation and scaling of picture files: as the program reads them."""

import struct

import numpy as np
import pytest
import rfexec
from rfexec import Picture


def write_tiff(path, pages):
    """Pages [rows, columns, 3] of bytes, each with an orientation; uncompressed."""
    data = bytearray(struct.pack("<2sHI", b"II", 42, 0))
    link = 4
    for pixels, orientation in pages:
        rows, columns, _ = pixels.shape
        at = len(data)
        data += pixels.tobytes()
        bits = len(data)
        data += struct.pack("<3H", 8, 8, 8) + b"\0\0"
        tags = [(256, 4, 1, columns), (257, 4, 1, rows), (258, 3, 3, bits), (259, 3, 1, 1)]
        tags += [(262, 3, 1, 2), (273, 4, 1, at), (274, 3, 1, orientation), (277, 3, 1, 3)]
        tags += [(278, 4, 1, rows), (279, 4, 1, pixels.size)]
        data[link : link + 4] = struct.pack("<I", len(data))
        data += struct.pack("<H", len(tags))
        data += b"".join(struct.pack("<HHII", *tag) for tag in tags)
        link = len(data)
        data += struct.pack("<I", 0)
    path.write_bytes(data)


@pytest.fixture
def tiff(tmp_path):
    generator = np.random.default_rng(3)
    first = generator.integers(0, 256, (40, 52, 3), dtype=np.uint8)
    second = generator.integers(0, 256, (24, 36, 3), dtype=np.uint8)
    write_tiff(tmp_path / "pages.tif", [(first, 1), (second, 6)])  # the second on its side
    return tmp_path / "pages.tif"


@pytest.mark.parametrize(
    "picture, size, options",
    [
        ({}, (40, 52), []),
        ({"page": 1}, (36, 24), ["--page", 1]),
        ({"page": 1, "orient": False}, (24, 36), ["--page", 1, "--no-orient"]),
        ({"channels": (3, 1, 1)}, (40, 52), ["--channels", "3,1,1"]),
        ({"scale": 2.0, "mean": 0.5, "std": (1, 2, 4)}, (40, 52),
         ["--scale", 2, "--mean", "0.5,0.5,0.5", "--std", "1,2,4"]),
        ({"bgr": True}, (40, 52), ["--bgr"]),
    ],
)
def test_as_the_program(program, tmp_path, tiff, picture, size, options):
    chosen = Picture(tiff, **picture)
    assert rfexec.picture_size(chosen) == (*size, 3)
    program("run", "fsrcnn", tiff, "-o", tmp_path / "out.npy", *options)
    want = np.load(tmp_path / "out.npy")
    net = rfexec.open("fsrcnn", size=size)
    (name,) = [o.name for o in net.outputs]
    for memory in (None, "24MiB"):
        assert net.plan(memory, picture=chosen).peak_bytes > 0
        assert len(net.stages(memory, picture=chosen)) >= 1
        assert net.run(chosen, memory)[name].tobytes() == want.tobytes()
    got = np.concatenate([band for _, band in net.bands(chosen, "24MiB")], axis=2)
    assert got.tobytes() == want.tobytes()


def test_bands_of_an_array(program, tmp_path):
    values = np.random.default_rng(1).standard_normal((5, 40, 30), dtype=np.float32)
    np.save(tmp_path / "five.npy", values)
    net = rfexec.open("fsrcnn", size=(40, 30))
    got = net.run(Picture(tmp_path / "five.npy", channels=[5, 2, 2]))
    want = net.run(values[[4, 1, 1]])
    assert got[net.outputs[0].name].tobytes() == want[net.outputs[0].name].tobytes()


def test_refusals(tiff):
    net = rfexec.open("fsrcnn", size=(40, 52))
    with pytest.raises(rfexec.RefusedError, match="pages.tif"):
        net.run(Picture(tiff, page=2))
    with pytest.raises(rfexec.RefusedError, match="40x52"):
        net.run(Picture(tiff, page=1))
    for wrong, words in [
        ({"page": -1}, "page is -1"),
        ({"channels": ()}, "channels is empty"),
        ({"channels": (0, 1, 2)}, "count from 1"),
        ({"channels": (70000, 1, 2)}, "70000: bands count from 1 to 65535"),
        ({"channels": (1, 2, 3), "bgr": True}, "bgr has to be 0"),
        ({"page": 2**64}, "page is 18446744073709551616"),
        ({"page": "1"}, "page is '1': a whole number"),
        ({"max_pixels": 2**64}, "max_pixels is 18446744073709551616"),
        ({"channels": (2**32 + 3, 2, 1)}, "channel is 4294967299"),
        ({"channels": (3.0, 2, 1)}, "channel is 3.0"),
    ]:
        with pytest.raises(rfexec.UsageError, match=words):
            net.run(Picture(tiff, **wrong))
        with pytest.raises(rfexec.UsageError, match=words):
            rfexec.picture_size(Picture(tiff, **wrong))
    with pytest.raises(rfexec.UsageError, match="NUL"):
        rfexec.picture_size(str(tiff) + "\0.png")
    with pytest.raises(rfexec.UsageError, match="2 numbers"):
        net.run(Picture(tiff, mean=(1, 2)))
