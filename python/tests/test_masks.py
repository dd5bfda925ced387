"""Runs with a mask: the bytes of the program's --mask, and arrays with the bits of the whole run."""

import numpy as np
import pytest
import rfexec
import tifffile
from conftest import TOP, random_image
from test_files import bytes_of

MODEL = TOP / "data" / "defect_net.onnx"
ROWS, COLUMNS = 320, 256  # of the image; its output is 8 times smaller


@pytest.fixture
def mask(tmp_path):
    """A file with an eighth of the image's rows and columns: two places far from each other."""
    wanted = np.zeros((ROWS // 8, COLUMNS // 8), np.uint8)
    wanted[2:5, 3:8] = wanted[-2, -3] = 255
    path = tmp_path / "mask.pgm"
    path.write_bytes(b"P5 %d %d 255\n" % wanted.shape[::-1] + wanted.tobytes())
    return path


def wanted_of(path):
    values = np.frombuffer(path.read_bytes()[-ROWS * COLUMNS // 64 :], np.uint8)
    return values.reshape(ROWS // 8, COLUMNS // 8) != 0


@pytest.mark.parametrize(
    "name, members, options",
    [
        ("map.npy", {}, []),
        ("map.tif", {"compression": "deflate"}, ["--tiff-compress", "deflate"]),
        ("map.ome.tif", {"overviews": "mean"}, ["--overviews", "mean"]),
        ("map.png", {"bits": 16, "range": (0, 1)}, ["--bits", "16", "--range", "0,1"]),
        ("map.ome.zarr", {}, []),
    ],
)
@pytest.mark.parametrize("memory", [None, "24MiB"])
def test_bytes_are_the_programs(program, tmp_path, mask, name, members, options, memory):
    budget = ["--memory", memory] if memory else []
    (tmp_path / "program").mkdir()
    (tmp_path / "package").mkdir()
    theirs, ours = tmp_path / "program" / name, tmp_path / "package" / name
    image = f"synthetic:{ROWS}x{COLUMNS}"
    program("run", MODEL, image, "--mask", mask, "-o", theirs, *options, *budget)
    file = rfexec.File(ours, **members)
    assert rfexec.open(MODEL, (ROWS, COLUMNS)).run(image, memory, output=file, mask=mask) == {}
    assert bytes_of(ours) == bytes_of(theirs)


def test_arrays(mask):
    image = random_image(ROWS, COLUMNS)
    net = rfexec.open(MODEL, (ROWS, COLUMNS))
    told = []
    whole = net.run(image)["defects"]
    masked = net.run(image, mask=mask, progress=lambda *numbers: told.append(numbers))["defects"]
    assert np.array_equal(masked, np.where(wanted_of(mask), whole, 0))
    assert told[-1][0] == told[-1][1] < whole[0, 0].size / 4
    assert np.array_equal(rfexec.Model(MODEL).run(image, mask=str(mask))["defects"], masked)
    samples = np.arange(ROWS * COLUMNS * 3, dtype=np.uint8).reshape(ROWS, COLUMNS, 3)
    masked = net.run(samples, "24MiB", mask=mask)["defects"]
    assert np.array_equal(masked, np.where(wanted_of(mask), net.run(samples)["defects"], 0))


def test_no_data_of_a_georeferenced_image(program, tmp_path, mask):
    scene = tmp_path / "scene.tif"
    samples = np.random.default_rng(3).integers(0, 255, (ROWS, COLUMNS, 3), np.uint8)
    tags = [
        (33550, 12, 3, (0.5, 0.5, 0.0), True),
        (33922, 12, 6, (0, 0, 0, 440720.0, 3751320.0, 0), True),
        (42113, 2, 6, "-9999", True),
    ]
    tifffile.imwrite(scene, samples, photometric="rgb", extratags=tags)
    program("run", MODEL, scene, "--mask", mask, "-o", tmp_path / "program.tif")
    net = rfexec.open(MODEL, (ROWS, COLUMNS))
    assert net.run(scene, mask=mask, output=tmp_path / "package.tif") == {}
    assert (tmp_path / "package.tif").read_bytes() == (tmp_path / "program.tif").read_bytes()
    masked = net.run(scene, mask=mask)["defects"]
    assert np.array_equal(masked, np.where(wanted_of(mask), net.run(scene)["defects"], -9999))


def test_one_of_several_outputs(program, tmp_path, mask):
    net = rfexec.open("posenet", (129, 161))
    name, image = net.outputs[1].name, "synthetic:129x161"
    program("run", "posenet", image, "--mask", mask, "--part-output", name, "-o", tmp_path / "p.npy")
    assert net.run(image, mask=mask, output={name: tmp_path / "q.npy"}) == {}
    assert (tmp_path / "q.npy").read_bytes() == (tmp_path / "p.npy").read_bytes()
    result = net.run(image, mask=mask, outputs=name)
    assert list(result) == [name] and np.array_equal(result[name], np.load(tmp_path / "q.npy"))
    with pytest.raises(rfexec.UsageError, match="mask is of one output"):
        net.run(image, mask=mask)


def everything(folder):
    path = folder / "all.npy"
    np.save(path, np.ones((1, 64, 64), np.float32))
    return path


def test_refusals(tmp_path, mask):
    net = rfexec.open(MODEL, (ROWS, COLUMNS))
    image = random_image(ROWS, COLUMNS)
    with pytest.raises(rfexec.UsageError, match="needs range"):
        net.run(image, mask=mask, output=tmp_path / "map.png")
    with pytest.raises(rfexec.UsageError, match="mask excludes observe"):
        net.run(image, mask=mask, observer=print)
    with pytest.raises(rfexec.UsageError, match="not for a batch"):
        net.run(np.concatenate([image, image]), mask=mask)
    with pytest.raises(rfexec.UsageError, match="a part of one"):
        net.part(1, 2).run(image, mask=mask)
    with pytest.raises(FileNotFoundError, match="mask: .*none.png") as failure:
        net.run(image, mask=tmp_path / "none.png")
    assert failure.value.filename == str(tmp_path / "none.png")
    mask.write_bytes(b"no picture")
    with pytest.raises(rfexec.RefusedError, match="mask: "):
        net.run(image, mask=mask)
    with pytest.raises(rfexec.BudgetError, match="mask: .* the budget is 9"):
        net.run(image, 9, mask=everything(tmp_path))
    with pytest.raises(rfexec.RefusedError, match="not a map of rows and columns"):
        rfexec.open("mobilenet_v2", (64, 64)).run("synthetic:64x64", mask=everything(tmp_path))
    model = rfexec.Model(MODEL)
    model.close()
    with pytest.raises(rfexec.UsageError, match="the model is closed"):
        model.run(image, mask=mask)
    assert not (tmp_path / "map.png").exists()
