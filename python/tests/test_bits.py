"""Bits: those of the program, whatever the budget, threads, layout or way in."""

import numpy as np
import pytest
import rfexec
from conftest import TOP, random_image
from rfexec._inputs import Input

NETWORKS = ["squeezenet1_1", "fsrcnn:2", str(TOP / "data" / "defect_net.onnx")]


def program_outputs(program, tmp_path, model, source, *options):
    """What `rfexec run -o` writes, of the one output."""
    program("run", model, source, "-o", tmp_path / "out.npy", *options)
    return np.load(tmp_path / "out.npy")


@pytest.mark.parametrize("model", NETWORKS)
@pytest.mark.parametrize("conv", ["direct", "openblas", "winograd"])
def test_programs_bits_of_an_array(program, tmp_path, model, conv):
    image = random_image(97, 130)
    np.save(tmp_path / "in.npy", image)
    want = program_outputs(program, tmp_path, model, tmp_path / "in.npy", "--conv", conv)
    net = rfexec.open(model, size=(97, 130), conv=conv)
    (name,) = [o.name for o in net.outputs]
    with pytest.raises(rfexec.BudgetError) as least:
        net.plan(memory=1, threads=2)
    for memory in (None, least.value.forecast.peak_bytes):
        got = net.run(image, memory=memory, threads=2)[name]
        assert got.shape == net.outputs[0].shape == want.shape
        assert got.dtype == np.float32
        assert got.tobytes() == want.tobytes()


def test_programs_bits_of_a_picture(program, tmp_path):
    program("run", "fsrcnn:2", "synthetic:40x56", "-o", tmp_path / "small.png")
    net = rfexec.open("squeezenet1_1", size=rfexec.picture_size(tmp_path / "small.png")[:2])
    want = program_outputs(program, tmp_path, "squeezenet1_1", tmp_path / "small.png")
    assert net.run(tmp_path / "small.png")["output"].tobytes() == want.tobytes()
    assert net.run(str(tmp_path / "small.png"), memory="64MiB")["output"].tobytes() == want.tobytes()


def test_programs_bits_of_a_synthetic_picture(program, tmp_path):
    want = program_outputs(program, tmp_path, "squeezenet1_1", "synthetic:64x96:7")
    net = rfexec.open("squeezenet1_1", size=(64, 96))
    assert net.run("synthetic:64x96:7")["output"].tobytes() == want.tobytes()


class Lazy:
    """Gives parts of an array, and counts them."""

    def __init__(self, array, chunks=None):
        self.array, self.chunks = array, chunks
        self.shape, self.dtype, self.rows = array.shape, array.dtype, []

    def __getitem__(self, index):
        self.rows.append(index[-2])
        return self.array[index]


def ways_in(image):
    """The same image in many forms, each with its layout."""
    pixels = np.ascontiguousarray(image[0].transpose(1, 2, 0))
    wide = np.zeros((1, 5, image.shape[2] * 2, image.shape[3] + 9), np.float32)
    wide[:, 1:4, ::2, 9:] = image
    bytes_off = np.zeros(image.nbytes + 1, np.uint8)
    odd = np.frombuffer(bytes_off.data, np.float32, image.size, 1).reshape(image.shape)
    odd[...] = image
    yield image, "NCHW"
    yield image[0], "NCHW"
    yield pixels, "NHWC"
    yield pixels[None], "NHWC"
    yield pixels.transpose(2, 0, 1), "NCHW"
    yield wide[:, 1:4, ::2, 9:], "NCHW"
    yield image[:, ::-1, ::-1, ::-1].copy()[:, ::-1, ::-1, ::-1], "NCHW"
    yield np.asfortranarray(image), "NCHW"
    yield odd, "NCHW"
    yield Lazy(image), "NCHW"
    yield Lazy(image[0]), "NCHW"
    yield Lazy(pixels), "NHWC"
    yield Lazy(image, chunks=(1, 3, 7, 13)), "NCHW"
    yield Lazy(image, chunks=((1,), (3,), (32, 18), (37,))), "NCHW"


@pytest.mark.parametrize("memory", [None, "9MiB"])
def test_every_way_in(memory):
    image = random_image(50, 37)
    net = rfexec.open("fsrcnn:2", size=(50, 37))
    name = net.outputs[0].name
    want = net.run(image)[name].tobytes()
    with net.prepare(memory, threads=2) as runner:
        for array, layout in ways_in(image):
            assert net.run(array, memory, layout=layout)[name].tobytes() == want
            assert runner.run(array, layout=layout)[name].tobytes() == want


def test_what_c_can_read_is_not_copied():
    image = random_image(50, 37)
    for array, layout in ways_in(image):
        if isinstance(array, np.ndarray):
            place = Input(array, (1, 3, 50, 37), layout, lambda fill: (None, None)).raw.values
            # what lies between floats is read in parts, and not copied as a whole either
            assert place == (array.ctypes.data if array.ctypes.data % 4 == 0 else None)


def test_one_value_for_all_pixels():
    net = rfexec.open("fsrcnn:2", size=(20, 30))
    name = net.outputs[0].name
    same = np.broadcast_to(np.float32(0.25), (1, 3, 20, 30))
    assert net.run(same)[name].tobytes() == net.run(same.copy())[name].tobytes()


def test_chunks_are_read_once_by_a_stream():
    image = random_image(400, 64)
    net = rfexec.open("squeezenet1_1", size=(400, 64))
    least = 0
    with pytest.raises(rfexec.BudgetError) as failure:
        net.plan(memory=1)
    least = failure.value.forecast.peak_bytes
    source = Lazy(image, chunks=(1, 3, 100, 64))
    net.run(source, memory=least)
    assert [rows.start for rows in source.rows] == [0, 100, 200, 300]
    plain = Lazy(image)
    net.run(plain, memory=least)
    assert max(rows.stop - rows.start for rows in plain.rows) <= 64


def test_padding():
    image = random_image(19, 21)
    filled = np.pad(image, ((0, 0), (0, 0), (0, 5), (0, 3)), mode="edge")
    whole = rfexec.open("fsrcnn", size=(24, 24)).run(filled)["output"]
    net = rfexec.open("fsrcnn", size=(19, 21), pad_to=8, padding="edge")
    assert net.outputs[0].shape == (1, 3, 38, 42)
    assert net.run(image)["output"].tobytes() == whole[..., :38, :42].tobytes()


def test_runners_run_again():
    net = rfexec.open("squeezenet1_1", size=(70, 60))
    images = [random_image(70, 60, seed=s) for s in range(3)]
    want = [net.run(i)["output"].tobytes() for i in images]
    runner = net.prepare(memory="64MiB")
    assert runner.forecast == net.plan(memory="64MiB")
    for _ in range(2):
        assert [runner.run(i)["output"].tobytes() for i in images] == want
    runner.close()
    runner.close()
    with pytest.raises(rfexec.UsageError, match="closed"):
        runner.run(images[0])
