"""What the documentation shows, and the examples in Python, do what they say."""

import doctest
import subprocess
import sys

import numpy as np
import pytest
import rfexec
from conftest import TOP


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that has the tree's data."""
    (tmp_path / "data").symlink_to(TOP / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page, least", [("docs/python.md", 15), ("README.md", 3)])
def test_pages(place, page, least):
    # numpy 1 shows a truth as True, numpy 2 as np.True_
    text = (TOP / page).read_text()
    if int(np.__version__.split(".")[0]) < 2:
        text = text.replace("np.True_", "True")
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert len(test.examples) >= least
    said = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


def test_large_map(place):
    example = TOP / "examples" / "large_map.py"
    done = subprocess.run(
        [sys.executable, example, "fsrcnn", "synthetic:200x100", "out.npy", "9MiB"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("rows") > 1 and done.stderr.endswith("to 400 of 400\n")
    want = rfexec.open("fsrcnn", (200, 100)).run("synthetic:200x100", threads=1)
    assert np.load("out.npy").tobytes() == next(iter(want.values())).tobytes()


def test_dask_to_zarr(place):
    da, zarr = pytest.importorskip("dask.array"), pytest.importorskip("zarr")
    done = subprocess.run(
        [sys.executable, TOP / "examples" / "dask_to_zarr.py", TOP / "data" / "defect_net.onnx", "512", "384",
         "map.zarr", "20MiB"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1x3x64x48 in map.zarr, the largest value 0.")
    image = da.random.default_rng(0).standard_normal((3, 512, 384), chunks=(3, 128, 384), dtype="float32")
    want = rfexec.open(TOP / "data" / "defect_net.onnx", (512, 384)).run(image.compute())["defects"]
    assert zarr.open("map.zarr", mode="r")[:].tobytes() == want.tobytes()


def test_tiff_to_tiff(place):
    """What the example and the documentation show is what it prints; bits are those of an array."""
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("zarr")
    example = TOP / "examples" / "tiff_to_tiff.py"
    pixels = np.random.default_rng(0).integers(0, 256, (2048, 1536, 3), np.uint8)
    tifffile.imwrite("scene.tif", pixels, tile=(256, 256), compression="zlib", photometric="rgb")
    done = subprocess.run(
        [sys.executable, example, "data/defect_net.onnx", "scene.tif", "defects.tif", "24MiB"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for page in (example, TOP / "docs" / "python.md"):
        assert "\n    " + done.stdout in page.read_text()
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    image = (pixels.astype(np.float32) / np.float32(255) - mean) / std
    net = rfexec.open("data/defect_net.onnx", (2048, 1536))
    want = net.run(image, layout="NHWC")["defects"]
    assert tifffile.imread("defects.tif").transpose(2, 0, 1).tobytes() == want.tobytes()
