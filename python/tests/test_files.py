"""Files that runs write: the bytes of the program's."""

import numpy as np
import pytest
import rfexec
import tifffile
from conftest import TOP, random_image

MODEL = TOP / "data" / "defect_net.onnx"
KINDS = [
    ("map.npy", {}, []),
    ("map.tif", {}, []),
    ("map.tif", {"bits": 16, "range": (0, 1)}, ["--bits", "16", "--range", "0,1"]),
    ("map.tif", {"bits": 8, "compression": "deflate"}, ["--bits", "8", "--tiff-compress", "deflate"]),
    ("map.tif", {"cog": True}, ["--cog"]),
    ("map.ome.tif", {"overviews": "mean"}, ["--overviews", "mean"]),
    ("map.png", {}, []),
    ("map.png", {"bits": 16}, ["--bits", "16"]),
    ("map.pfm", {}, []),
    ("map.zarr", {"zarr_format": 2, "chunk": 16}, ["--zarr-format", "2", "--zarr-chunk", "16"]),
    ("map.ome.zarr", {}, []),
    ("map.geojson", {"threshold": 0.02}, ["--threshold", "0.02"]),
    (
        "map.csv",
        {"threshold": (0.01, 0.02, 0.03), "corners": True, "min_area": 2, "coordinates": "pixels"},
        ["--threshold", "0.01,0.02,0.03", "--connect", "8", "--min-area", "2", "--coordinates", "pixels"],
    ),
    ("map.geojson", {"all_labels": True, "answer_memory": 1 << 20}, ["--all-labels", "--answer-memory", "1MiB"]),
]


def bytes_of(path):
    if path.is_dir():
        return {f.relative_to(path): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}
    return path.read_bytes()


@pytest.mark.parametrize("name, members, options", KINDS)
@pytest.mark.parametrize("memory", [None, "24MiB"])
def test_bytes_are_the_programs(program, tmp_path, name, members, options, memory):
    budget = ["--memory", memory] if memory else []
    (tmp_path / "program").mkdir()
    (tmp_path / "package").mkdir()
    theirs, ours = tmp_path / "program" / name, tmp_path / "package" / name
    program("run", MODEL, "synthetic:320x256", "-o", theirs, *options, *budget)
    net = rfexec.open(MODEL, (320, 256))
    file = rfexec.File(ours, **members)
    assert net.run("synthetic:320x256", memory=memory, output=file) == {}
    assert bytes_of(ours) == bytes_of(theirs)


def test_georeference_and_arrays(program, tmp_path):
    scene = tmp_path / "scene.tif"
    samples = np.random.default_rng(3).integers(0, 255, (96, 128, 3), np.uint8)
    tags = [(33550, 12, 3, (0.5, 0.5, 0.0), True), (33922, 12, 6, (0, 0, 0, 440720.0, 3751320.0, 0), True)]
    tifffile.imwrite(scene, samples, photometric="rgb", extratags=tags)
    program("run", MODEL, scene, "-o", tmp_path / "program.tif")
    net = rfexec.open(MODEL, (96, 128))
    result = net.run(scene, output=tmp_path / "package.tif", outputs=["defects"])
    assert (tmp_path / "package.tif").read_bytes() == (tmp_path / "program.tif").read_bytes()
    with tifffile.TiffFile(tmp_path / "package.tif") as tif:
        assert tif.pages[0].tags[33550].value[:2] == (4.0, 4.0)
    assert (result["defects"] == net.run(scene)["defects"]).all()
    image = random_image(96, 128)
    net.run(image, output={"defects": tmp_path / "array.npy"})
    assert (np.load(tmp_path / "array.npy") == net.run(image)["defects"]).all()


def test_several_outputs(program, tmp_path):
    net = rfexec.open("posenet", (129, 161))
    program("run", "posenet", "synthetic:129x161", "-o", tmp_path / "p.npy")
    net.run("synthetic:129x161", output=tmp_path / "q.npy")
    for info in net.outputs:
        name = info.name.replace("/", "_")
        assert (tmp_path / f"q.{name}.npy").read_bytes() == (tmp_path / f"p.{name}.npy").read_bytes()
    first, *rest = [info.name for info in net.outputs]
    result = net.run("synthetic:129x161", output={first: tmp_path / "one.tif"})
    assert sorted(result) == sorted(rest) and (tmp_path / "one.tif").exists()


def test_refusals(tmp_path):
    net = rfexec.open(MODEL, (64, 64))
    image = random_image(64, 64)
    there = tmp_path / "there.png"
    there.write_bytes(b"as it was")
    for output, words in [
        (tmp_path / "map.jpg", "must end in .npy"),
        (rfexec.File(tmp_path / "map.npy", cog=True), "cog is for .tif"),
        (rfexec.File(tmp_path / "map.tif", compression="lzw"), "deflate, zstd"),
        (rfexec.File(tmp_path / "map.tif", tile=17), "multiple of 16"),
        (rfexec.File(there, bits=32), "8 or 16, not 32|samples of 8 or 16 bits"),
        ({"other": tmp_path / "map.tif"}, "no output 'other'"),
    ]:
        with pytest.raises(rfexec.UsageError, match=words):
            net.run(image, output=output)
    with pytest.raises(rfexec.Error, match="No such file"):
        net.run(image, output=tmp_path / "no" / "map.npy")

    def stop(done, total):
        raise KeyError("stop")

    with pytest.raises(KeyError):
        net.run(image, progress=stop, output=there)
    assert there.read_bytes() == b"as it was"
    assert sorted(tmp_path.iterdir()) == [there]
    with pytest.raises(rfexec.UsageError, match="batch"):
        net.run(np.concatenate([image, image]), output=tmp_path / "map.npy")


@pytest.mark.parametrize("name", ["map.tif", "map.ome.tif", "map.png", "map.zarr"])
def test_plans_count_files_and_run_in_the_least(python, tmp_path, name):
    net = rfexec.open("fsrcnn", (384, 512))
    path = tmp_path / name
    with pytest.raises(rfexec.BudgetError) as failure:
        net.plan(memory=1, threads=1, picture="synthetic:384x512", output=path)
    with pytest.raises(rfexec.BudgetError) as without:
        net.plan(memory=1, threads=1, picture="synthetic:384x512")
    least = failure.value.needed_bytes
    assert least > without.value.needed_bytes
    ran = python(
        f"import rfexec\nnet = rfexec.open('fsrcnn', (384, 512))\n"
        f"assert net.run('synthetic:384x512', {least}, 1, output={str(path)!r}) == {{}}"
    )
    assert ran.returncode == 0, ran.stderr
    assert path.exists()
