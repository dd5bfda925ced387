"""Dask arrays of outputs: chunks are parts of one run, in threads and in processes of a cluster."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import rfexec
from conftest import TOP, random_image

da = pytest.importorskip("dask.array")
zarr = pytest.importorskip("zarr")
distributed = pytest.importorskip("distributed")

DEFECTS = str(TOP / "data" / "defect_net.onnx")
SIZE = (201, 155)


@pytest.fixture(scope="module")
def image():
    return random_image(*SIZE)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=tmp_path_factory.mktemp("workers"),
    ) as cluster, distributed.Client(cluster):
        yield cluster


def whole(model, image, size=SIZE, output=None, **options):
    net = rfexec.open(model, size=size, **options)
    return net.run(image)[output or net.outputs[0].name]


def assert_same(lazy, want):
    assert lazy.shape == want.shape and lazy.dtype == want.dtype
    got = lazy.compute()
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


def test_not_imported(python):
    code = "import rfexec, sys; print('dask' in sys.modules, rfexec.dask.map_image.__name__)"
    assert python(code).stdout == "False map_image\n"


@pytest.mark.parametrize(
    "model, options, output, chunks, count",
    [
        ("fsrcnn", {}, None, (170, 90), 12),
        (DEFECTS, {"conv": "winograd"}, "defects", 10, 6),
        ("posenet:0.25", {"pad_to": 16, "seed": 3}, "float_segments", ((1, 12), -1), 2),
    ],
)
def test_array_and_dask(model, options, output, chunks, count):
    image = random_image(*SIZE, seed=2)
    want = whole(model, image, output=output, **options)
    blocks = da.from_array(image[0], chunks=(2, 37, 50))
    pixels = np.ascontiguousarray(image[0].transpose(1, 2, 0))
    last = da.from_array(pixels[None], chunks=(1, 64, 29, 3))
    for given, layout in ((image, "NCHW"), (blocks, "NCHW"), (pixels, "NHWC"), (last, "NHWC")):
        lazy = rfexec.dask.map_image(
            model, given, "64MiB", chunks=chunks, layout=layout, output=output, **options
        )
        assert lazy.npartitions == count
        assert_same(lazy, want)


def test_files(image, tmp_path, monkeypatch):
    """Paths are those of the folder where the array was made; a file that changes has another name."""
    want = whole("fsrcnn", image)
    monkeypatch.chdir(tmp_path)
    np.save("image.npy", image)
    picture = rfexec.Picture("image.npy", scale=1.0, mean=0.0, std=1.0)
    lazy = rfexec.dask.map_image("fsrcnn", picture, "64MiB", chunks=150)
    shutil.copy(DEFECTS, "net.onnx")
    defects = rfexec.dask.map_image("net.onnx", image, chunks=(5, -1))
    monkeypatch.chdir("/")
    assert_same(lazy, want)
    assert_same(defects, whole(DEFECTS, image))
    monkeypatch.chdir(tmp_path)
    again = rfexec.dask.map_image("fsrcnn", picture, "64MiB", chunks=150)
    np.save("image.npy", 2 * image)
    other = rfexec.dask.map_image("fsrcnn", picture, "64MiB", chunks=150)
    assert again.name == lazy.name != other.name


def test_replaced_model(tmp_path):
    """Another file under a model's name is refused by what was made for the first, and else used."""
    image, path = random_image(32, 32), tmp_path / "net.onnx"
    first, other = (two_outputs(near).SerializeToString() for near in ("AveragePool", "MaxPool"))

    def put(data):
        path.with_name("new").write_bytes(data)
        path.with_name("new").replace(path)

    put(first)
    lazy = rfexec.dask.map_image(path, image, chunks=20)
    put(other)
    assert_same(rfexec.dask.map_image(path, image, chunks=20), whole(other, image, None))
    with pytest.raises(rfexec.UsageError, match="net.onnx' is not the file"):
        lazy.compute()
    put(first)
    assert_same(lazy, whole(first, image, None))
    path.unlink()
    with pytest.raises(rfexec.RefusedError, match="net.onnx"):
        lazy.compute()


def test_zarr(image, tmp_path):
    stored = zarr.open(
        str(tmp_path / "image.zarr"), mode="w", shape=image.shape, chunks=(1, 3, 64, 50), dtype="f4"
    )
    stored[...] = image
    lazy = rfexec.dask.map_image("fsrcnn", stored, chunks=150)
    assert_same(lazy, whole("fsrcnn", image))
    stored[...] = 2 * image  # under the same name
    other = rfexec.dask.map_image("fsrcnn", stored, chunks=150)
    assert other.name != lazy.name


def test_needs_alone(image):
    """A chunk depends on the blocks that its rectangle of the image meets, and is given no more."""
    seen = set()

    def note(block, block_info=None):
        if isinstance(block_info, dict):  # not while dask finds out what comes of a block
            seen.add(block_info[0]["chunk-location"][1:])
        return block

    blocks = da.from_array(image[0], chunks=(3, 20, 20)).map_blocks(note, dtype=np.float32)
    lazy = rfexec.dask.map_image("fsrcnn", blocks, chunks=100)
    assert lazy.npartitions == 5 * 4
    with pytest.raises(RuntimeError, match="16 pixels"):
        window = rfexec.dask._Window((3, 40, 40), [(0, 20, 0, 20)], [image[0, :, :20, :20]], "NCHW")
        window[0, 4:8, 16:24]
    lazy.blocks[0, 0, 2, 1].compute(scheduler="sync")
    part = rfexec.open("fsrcnn", size=SIZE).part_rect(slice(200, 300), slice(100, 200))
    (y, x) = part.needs
    wanted = {(i, j) for i in range(y.start // 20, -(-y.stop // 20))
              for j in range(x.start // 20, -(-x.stop // 20))}  # fmt: skip
    assert seen == wanted and len(wanted) < 30 < blocks.npartitions
    keys = [key for key in dict(lazy.dask) if "part-of-" in key[0] and key[1:5] == (0, 0, 2, 1)]
    sizes = [block.size for block in da.core.Array.__dask_scheduler__(dict(lazy.dask), keys)]
    assert 0 < sum(sizes) < 3 * (y.stop - y.start) * (x.stop - x.start)


def test_default_chunks():
    """Squares of 64 MiB of the image, or chunks of that, whichever is more."""
    lazy = rfexec.dask.map_image("fsrcnn", da.zeros((3, 5000, 2000), dtype=np.float32))
    assert lazy.chunks == ((1,), (3,), (2000,) * 5, (2000, 2000))
    lazy = rfexec.dask.map_image(DEFECTS, da.zeros((3, 5000, 2000), dtype=np.float32))
    assert lazy.chunks == ((1,), (3,), (209, 209, 207), (250,))


@pytest.mark.parametrize("shards", [None, 1, 9])
def test_whole_maps(shards):
    """Behind layers that see all of a map rounds of states come first, or every chunk is by itself."""
    image = random_image(40, 32)
    want = whole("unet_instance", image, (40, 32))
    blocks = da.from_array(image[0], chunks=(2, 13, 20))
    for given in (image, blocks) if shards != 9 else (blocks,):
        lazy = rfexec.dask.map_image("unet_instance", given, "64MiB", chunks=(16, 20), shards=shards)
        rounds = {key[1:3] for key in dict(lazy.dask) if key[0].startswith("rfexec-states-")}
        assert len(rounds) == 18 * (shards or 3)
        assert_same(lazy, want)
    if shards == 9:  # their states are added up in groups
        merges = [key for key in dict(lazy.dask) if key[0].startswith("rfexec-merged-")]
        assert len(merges) == 18 * 3
    assert_same(rfexec.dask.map_image("unet_instance", image), want)
    assert_same(rfexec.dask.map_image("fsrcnn", image, chunks=16), whole("fsrcnn", image, (40, 32)))


def test_recompute(tmp_path):
    image = random_image(32, 32)
    want = whole("unet_instance", image, (32, 32))
    lazy = rfexec.dask.map_image("unet_instance", image, chunks=(16, 32), recompute=True)
    assert not any(key[0].startswith("rfexec-states-") for key in dict(lazy.dask))
    assert_same(lazy, want)
    latent = random_image(8, 8, channels=4)
    with pytest.raises(rfexec.UsageError, match="2 chunks: .* has no parts: .*recompute=True"):
        rfexec.dask.map_image("vae_decoder", latent, chunks=(32, 64))
    with pytest.raises(rfexec.UsageError, match="shards is 0"):
        rfexec.dask.map_image("unet_instance", image, chunks=16, shards=0)
    picture = tmp_path / "image.npy"
    np.save(picture, image)
    lazy = rfexec.dask.map_image("unet_instance", picture, chunks=(16, 32))
    assert_same(lazy, want)


def two_outputs(near):
    """A model of which one output is a local pool, and the other is behind a global one."""
    onnx = pytest.importorskip("onnx")
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    shape = (1, 3, 32, 32)
    graph = make.make_graph(
        [
            make.make_node(near, ["image"], ["near"], kernel_shape=[3, 3], pads=[1] * 4),
            make.make_node("GlobalAveragePool", ["image"], ["mean"]),
            make.make_node("Sub", ["near", "mean"], ["levelled"]),
        ],
        "two", [make.make_tensor_value_info("image", kind, shape)],
        [make.make_tensor_value_info(name, kind, shape) for name in ("near", "levelled")],
    )  # fmt: skip
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)


def test_another_output_sees_whole_maps():
    """Of two outputs, the one that is not behind the pool has chunks without a round."""
    model, image = two_outputs("AveragePool"), random_image(32, 32)
    want = whole(model, image, None, output="near")
    assert_same(rfexec.dask.map_image(model, image, chunks=20, output="near"), want)
    for output, rounds in (("near", 0), ("levelled", 1)):
        lazy = rfexec.dask.map_image(model, image, chunks=20, output=output)
        assert sum(key[0].startswith("rfexec-states-") for key in dict(lazy.dask)) == 2 * rounds
        assert_same(lazy, whole(model, image, None, output=output))


def test_refusals(image, tmp_path):
    unknown = da.from_array(image[0], chunks=(3, 50, 155))[:, da.ones(201, dtype=bool)]
    wrong = da.from_array(image).map_blocks(lambda block: block.astype("f8"), dtype=np.float32)
    short = da.from_array(image).map_blocks(lambda block: block[..., :9], dtype=np.float32)
    for given, words in (
        (image.astype("f8"), "float64"),
        (image[:, :2], "takes .*array is"),
        (image[0, 0], "three axes, or four"),
        (unknown, "unknown sizes"),
        ("nothing.png", "nothing.png"),
    ):
        with pytest.raises(rfexec.Error, match=words):
            rfexec.dask.map_image("fsrcnn", given)
    with pytest.raises(rfexec.UsageError, match="came as float64"):
        rfexec.dask.map_image("fsrcnn", wrong).compute()
    short = rfexec.dask.map_image("fsrcnn", short, chunks=-1)
    with pytest.raises(rfexec.UsageError, match=r"came as float32 of shape \(3, 201, 9\)"):
        short.compute()
    with pytest.raises(rfexec.UsageError, match="no map"):
        rfexec.dask.map_image("mobilenet_v2", image)
    with pytest.raises(rfexec.UsageError, match="no output 'x'"):
        rfexec.dask.map_image("fsrcnn", image, output="x")
    for chunks, words in (((1, 3, 9, 9), "402 rows and 310"), (0, "zero"), (((0, 402), 9), "positive")):
        with pytest.raises(rfexec.UsageError, match=words):
            rfexec.dask.map_image("fsrcnn", image, chunks=chunks)
    with pytest.raises(rfexec.UsageError, match="memory is 'much'"):
        rfexec.dask.map_image("fsrcnn", image, "much")
    with pytest.raises(rfexec.BudgetError, match="1.0 MiB"):
        rfexec.dask.map_image("fsrcnn", image, "1MiB").compute()


def test_spill_and_threads(tmp_path):
    """Tasks run with the folder and the threads that were said: else this budget is too small."""
    image = random_image(160, 128)
    part = rfexec.open("unet_instance", (160, 128)).part(1, 1)
    with pytest.raises(rfexec.BudgetError) as failure:
        part.plan(memory=1, threads=1, spill=tmp_path)
    least = failure.value.forecast.peak_bytes
    lazy = rfexec.dask.map_image("unet_instance", image, least, spill=tmp_path)
    assert_same(lazy, whole("unet_instance", image, (160, 128)))
    with pytest.raises(rfexec.BudgetError):
        rfexec.dask.map_image("unet_instance", image, least).compute()
    with pytest.raises(rfexec.BudgetError):
        rfexec.dask.map_image("unet_instance", image, least, threads=2, spill=tmp_path).compute()


def test_few_networks_wait(image):
    """Of networks that a worker has opened the last ones alone stay."""
    for seed in range(rfexec.dask._KEPT + 2):
        rfexec.dask.map_image("fsrcnn", image, chunks=-1, seed=seed).compute(scheduler="sync")
    assert [opened.seed for opened, _ in rfexec.dask._idle] == [2, 3]


def test_fork(image):
    """A child does not wait for a thread that stayed with its parent."""
    lazy, want = rfexec.dask.map_image("fsrcnn", image, chunks=300), whole("fsrcnn", image)
    with rfexec.dask._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(lazy.compute(scheduler="sync").tobytes() != want.tobytes())
    assert os.waitpid(child, 0)[1] == 0


def test_cluster(cluster, image, tmp_path):
    """The same in three processes that share nothing but files: pickled tasks, opened networks."""
    np.save(tmp_path / "image.npy", image)
    picture = rfexec.Picture(tmp_path / "image.npy", scale=1.0, mean=0.0, std=1.0)
    stored = da.from_array(image[0], chunks=(3, 64, 64)).persist()
    want = whole(DEFECTS, image)
    model = (TOP / "data" / "defect_net.onnx").read_bytes()
    for given in (image, stored, picture):
        assert_same(rfexec.dask.map_image(DEFECTS, given, "64MiB", chunks=7), want)
    assert_same(rfexec.dask.map_image(model, stored, "64MiB", chunks=7), want)
    lazy = rfexec.dask.map_image("fsrcnn", stored, "64MiB", chunks=(50, -1))
    assert_same(lazy, whole("fsrcnn", image))
    with distributed.Client(cluster, set_as_default=False) as client:
        opened = client.run(lambda: (os.getpid(), sum(map(len, rfexec.dask._idle.values()))))
    workers = {process for process, _ in opened.values()}
    assert len(workers) == 3 and os.getpid() not in workers
    assert any(count for _, count in opened.values())
    assert all(count <= rfexec.dask._KEPT for _, count in opened.values())  # one thread each
    with pytest.raises(rfexec.BudgetError, match="1.0 MiB"):
        rfexec.dask.map_image("fsrcnn", stored, "1MiB").compute()


def test_cluster_rounds(cluster):
    """States travel between three processes."""
    image = random_image(48, 33)
    stored = da.from_array(image[0], chunks=(3, 16, 33)).persist()
    lazy = rfexec.dask.map_image("unet_instance", stored, "64MiB", chunks=(16, -1))
    assert_same(lazy, whole("unet_instance", image, (48, 33)))


def test_rounds_example(cluster, tmp_path):
    example = TOP / "examples" / "dask_rounds.py"
    done = subprocess.run(
        [sys.executable, example, "unet_instance", "synthetic:96x64", "3", "64MiB", "map.npy",
         cluster.scheduler_address],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for page in (example, TOP / "docs" / "python.md"):
        assert "\n    " + done.stdout in page.read_text()
    want = whole("unet_instance", "synthetic:96x64", (96, 64))
    assert np.load(tmp_path / "map.npy").tobytes() == want.tobytes()


def test_example(cluster, tmp_path):
    example = TOP / "examples" / "dask_map.py"
    done = subprocess.run(
        [sys.executable, example, DEFECTS, "synthetic:600x500", "map.zarr", "20MiB",
         cluster.scheduler_address],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1x3x75x63 in 6 chunks of map.zarr, the largest value 1.0000\n"
    want = whole(DEFECTS, "synthetic:600x500", (600, 500))
    assert zarr.open(str(tmp_path / "map.zarr"), mode="r")[:].tobytes() == want.tobytes()
