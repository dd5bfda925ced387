"""What programs of numpy and ONNX Runtime expect: sizes that come with the image, samples, classes of
errors, handles that close and are not copied."""

import copy
import pathlib
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rfexec

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

RNG = np.random.default_rng(46)


def model(channels=3, size=("h", "w"), tail=(), name="net"):
    """A convolution 3x3, and what comes behind it, of images of this size."""
    weights = np.random.default_rng(1).standard_normal((4, channels, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["image", "w"], ["map"], pads=[1] * 4), *tail]
    last = nodes[-1].output[0]
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, channels, *size])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made.producer_name, made.doc_string = "tests", "a convolution"
    helper.set_model_props(made, {"key": "value"})
    return made


def values(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def test_size_comes_with_the_first_image(tmp_path):
    net = rfexec.open(model())
    assert net.inputs[0].shape == (1, 3, None, None) and net.outputs[0].shape == (1, 4, None, None)
    for use in (net.analyze, net.plan, net.prepare, lambda: net.part(1, 2)):
        with pytest.raises(rfexec.UsageError, match="no size yet"):
            use()
    image = values(3, 20, 31)
    result = net.run(image)["map"]
    assert net.inputs[0].shape == (1, 3, 20, 31)
    assert np.array_equal(result, rfexec.open(model(), size=(20, 31)).run(image)["map"])
    with pytest.raises(rfexec.UsageError):  # it has its size now
        net.run(values(3, 21, 31))
    last = rfexec.open(model()).run(np.ascontiguousarray(image.transpose(1, 2, 0)))["map"]
    assert np.array_equal(result, last)
    assert rfexec.open(model()).run("synthetic:24x40")["map"].shape == (1, 4, 24, 40)
    assert rfexec.open(model(), image="synthetic:24x40").inputs[0].shape == (1, 3, 24, 40)
    assert rfexec.open(model(size=(16, 16))).inputs[0].shape == (1, 3, 16, 16)


def test_refusals_are_the_models_own():
    refused = model(tail=[helper.make_node("NoSuchOp", ["map"], ["end"])])
    for open_it in (rfexec.open, rfexec.InferenceSession):
        with pytest.raises(rfexec.Error, match="NoSuchOp|takes neither"):
            net = open_it(refused)
            net.inputs  # noqa: B018


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("options", [{}, {"raw": True}, {"mean": 3, "std": 2}, {"mean": [1, 2, 3, 4]}])
def test_samples_are_those_of_pictures(tmp_path, channels, dtype, options):
    tifffile = pytest.importorskip("tifffile")
    options = {k: v[:channels] if isinstance(v, list) else v for k, v in options.items()}
    samples = RNG.integers(0, np.iinfo(dtype).max, (channels, 12, 17), dtype=dtype)
    if channels == 1:
        tifffile.imwrite(tmp_path / "a.tif", samples[0])
    else:
        kind = "minisblack" if channels != 3 else "rgb"
        tifffile.imwrite(tmp_path / "a.tif", samples, photometric=kind, planarconfig="separate")
    net = rfexec.open(model(channels), size=(12, 17))
    expected = net.run(rfexec.Picture(tmp_path / "a.tif", **options))["map"]
    for array, layout in ((samples, None), (samples.transpose(1, 2, 0), "NHWC"),
                          (samples.astype(np.dtype(dtype).newbyteorder()), None)):
        image = rfexec.Picture(array, **options) if options else array
        assert np.array_equal(net.run(image, layout=layout)["map"], expected)
    with net.prepare() as runner:
        assert np.array_equal(runner.run(rfexec.Picture(samples, **options))["map"], expected)


def test_counts_of_means():
    net = rfexec.open(model(4), size=(8, 8))
    samples = np.zeros((4, 8, 8), np.uint8)
    for given in ([1, 2, 3], [1, 2, 3, 4, 5], []):
        with pytest.raises(rfexec.UsageError, match="mean"):
            net.run(rfexec.Picture(samples, mean=given))
    with pytest.raises(rfexec.UsageError, match="mean has 2 numbers, the network takes 3 channels"):
        rfexec.open(model(), size=(8, 8)).run(rfexec.Picture("synthetic:8x8", mean=[1, 2]))


def test_odd_arrays():
    net = rfexec.open(model(), size=(8, 8))
    image = values(3, 8, 8)
    expected = net.run(image)["map"]
    assert np.array_equal(net.run(image.astype(">f4"))["map"], expected)
    masked = np.ma.masked_greater(image, 0)
    with pytest.raises(rfexec.UsageError, match=r"\.filled"):
        net.run(masked)
    assert np.array_equal(net.run(np.ma.array(image))["map"], expected)
    one = np.broadcast_to(np.float32(0.5), (3, 8, 8))
    assert np.array_equal(net.run(one)["map"], net.run(np.array(one))["map"])
    apart = np.ndarray((3, 8, 8), np.float32, bytearray(image.nbytes + 1), 1)
    apart[...] = image
    assert np.array_equal(net.run(apart)["map"], expected)


def test_regions(tmp_path):
    net = rfexec.open(model(), size=(40, 50))
    part = rfexec.Picture("synthetic:40x50", region=(slice(4, 24), slice(10, 41)))
    assert rfexec.picture_size(part) == (20, 31, 3)
    small = rfexec.open(model(), size=(20, 31))
    result = small.run(part)["map"]
    whole = net.run("synthetic:40x50")["map"]
    assert np.array_equal(result[:, :, 1:-1, 1:-1], whole[:, :, 5:23, 11:40])
    with pytest.raises(rfexec.RefusedError, match="region"):
        small.run(rfexec.Picture("synthetic:40x50", region=(slice(30, 50), slice(0, 31))))
    with pytest.raises(rfexec.UsageError, match="region"):
        small.run(rfexec.Picture("synthetic:40x50", region=(slice(5, None), slice(0, 31))))


def test_runners_take_pictures(tmp_path):
    net = rfexec.open(model(), size=(24, 40))
    image = values(3, 24, 40)
    with net.prepare("64MiB") as runner:
        before = runner.run(image)["map"]
        assert np.array_equal(runner.run("synthetic:24x40")["map"], net.run("synthetic:24x40")["map"])
        assert np.array_equal(runner.run(image)["map"], before)
        assert np.array_equal(runner.run(image, spill=tmp_path)["map"], before)
        runner.run("synthetic:24x40")
        assert len(runner.stages()) > 0
    with pytest.raises(rfexec.UsageError, match="closed"):
        runner.run("synthetic:24x40")


def test_errors_are_pythons(tmp_path):
    net = rfexec.open(model(), size=(16, 16))
    with pytest.raises(FileNotFoundError) as caught:
        rfexec.open("no such.onnx")
    assert isinstance(caught.value, rfexec.RefusedError) and caught.value.filename == "no such.onnx"
    for missing in (lambda: net.run(tmp_path / "none.tif"), lambda: rfexec.picture_size("none.tif"),
                    lambda: net.plan(picture="none.tif"), lambda: rfexec.open(pathlib.Path("resnet50"))):
        with pytest.raises(FileNotFoundError):
            missing()
    for folder in (lambda: net.run(tmp_path), lambda: rfexec.open(tmp_path)):
        with pytest.raises(IsADirectoryError):
            folder()
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    for use in (lambda: net.run(values(3, 16, 16), memory="1MiB"), lambda: net.plan("1MiB"),
                lambda: net.prepare("1MiB")):
        with pytest.raises(rfexec.BudgetError) as budget:
            use()
        assert budget.value.needed_bytes > 1 << 20
        assert "--" not in str(budget.value) and budget.value.__context__ is None
        net.plan(budget.value.needed_bytes)
    for wrong in (lambda: net.run(rfexec.Picture("synthetic:16x16", page=3)),
                  lambda: net.run(rfexec.Picture("synthetic:16x16", channels=(1, 2, 5)))):
        with pytest.raises(rfexec.Error) as refused:
            wrong()
        assert "--" not in str(refused.value)


def test_handles_close_and_are_not_copied():
    image = values(3, 16, 16)
    with rfexec.open(model(), size=(16, 16)) as net:
        part, runner = net.part(1, 2), net.prepare()
        session = rfexec.InferenceSession(model())
        for handle in (net, part, runner, session):
            for copies in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="cannot be copied or pickled"):
                    copies(handle)
        part.run(image)
        part.close()
        with pytest.raises(rfexec.UsageError, match="closed"):
            part.run(image)
        other = net.part(2, 2)
        net.run(image)
    for use in (lambda: net.run(image), net.analyze, net.plan, lambda: net.part(1, 2),
                lambda: runner.run(image), lambda: other.run(image), net.prepare):
        with pytest.raises(rfexec.UsageError, match="closed"):
            use()
    net.close()
    runner.close()
    other.close()
    assert "closed" in repr(net)


def test_sessions_in_threads():
    images = [values(1, 3, 16 + 8 * k, 24) for k in range(2)]
    expected = [rfexec.InferenceSession(model()).run(None, {"image": x})[0] for x in images]
    session = rfexec.InferenceSession(model())

    def job(i):
        return np.array_equal(session.run([], {"image": images[i % 2]})[0], expected[i % 2])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(job, range(80)))


def test_session_forms(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(model(name="a graph").SerializeToString())
    options = rfexec.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = rfexec.GraphOptimizationLevel.ORT_ENABLE_ALL
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        session = rfexec.InferenceSession(
            str(path), options, providers=["CUDAExecutionProvider", "CPUExecutionProvider"]
        )
    assert session.get_providers() == rfexec.get_available_providers() == ["CPUExecutionProvider"]
    assert session.get_inputs()[0].shape == [1, 3, "rows", "columns"]
    assert session.get_outputs()[0].shape == [1, 4, "rows", "columns"]
    for meta in (session.get_modelmeta(), rfexec.InferenceSession(path.read_bytes()).get_modelmeta()):
        assert (meta.graph_name, meta.producer_name, meta.description) == ("a graph", "tests", "a convolution")
        assert meta.custom_metadata_map == {"key": "value"}
    assert rfexec.InferenceSession("fsrcnn").get_modelmeta().graph_name == "fsrcnn"
    pooled = model(tail=[helper.make_node("Flatten", ["map"], ["flat"])])
    assert rfexec.InferenceSession(pooled).get_outputs()[0].shape == [1, None]
    with pytest.raises(rfexec.UsageError, match="no output 'none'"):
        session.run(["none"], {"image": values(1, 3, 8, 8)})


def test_the_program_says_it_too(tmp_path):
    """A model that states another size, an array that lies the other way round, the bare multiple."""
    import subprocess

    from conftest import PROGRAM

    def said(*arguments):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
        return done.returncode, done.stderr

    (tmp_path / "fixed.onnx").write_bytes(model(size=(16, 16)).SerializeToString())
    code, text = said("run", tmp_path / "fixed.onnx", "synthetic:20x24")
    assert code == 0 and "states images of 16x16; it is run at 20x24" in text
    assert said("run", tmp_path / "fixed.onnx", "synthetic:16x16") == (0, "")
    np.save(tmp_path / "last.npy", values(16, 24, 3))
    (tmp_path / "net.onnx").write_bytes(model().SerializeToString())
    code, text = said("run", tmp_path / "net.onnx", tmp_path / "last.npy")
    assert code == 3 and "looks like 16 rows and 24 columns of 3 channels" in text
    table = numpy_helper.from_array(values(1, 4, 16, 16), "table")  # of one size alone
    only = model(tail=[helper.make_node("Add", ["map", "table"], ["sum"])])
    only.graph.initializer.append(table)
    (tmp_path / "only.onnx").write_bytes(only.SerializeToString())
    code, text = said("run", tmp_path / "only.onnx", "synthetic:15x15")
    assert code == 3 and "--pad-to" not in text
