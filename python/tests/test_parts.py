"""Networks of parts of an output: side by side one run, and no more read than they need."""

import gc

import numpy as np
import pytest
import rfexec
from conftest import TOP, random_image


class Watched:
    """An array-like that knows which rows were read."""

    def __init__(self, array):
        self.array, self.rows = array, [array.shape[2], 0]
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, index):
        rows = index[2]
        self.rows = [min(self.rows[0], rows.start), max(self.rows[1], rows.stop)]
        return self.array[index]


@pytest.mark.parametrize("model", ["fsrcnn", "unet_instance", str(TOP / "data" / "defect_net.onnx")])
@pytest.mark.parametrize("memory", [None, "64MiB"])
def test_side_by_side(model, memory):
    image = random_image(96, 128)
    net = rfexec.open(model, size=(96, 128))
    name = net.outputs[0].name
    want = net.run(image)[name]
    parts = [net.part(i, 5) for i in range(1, 6)]
    got = [part.run(image, memory)[name] for part in parts]
    assert [g.shape for g in got] == [part.outputs[0].shape for part in parts]
    assert np.concatenate(got, axis=2).tobytes() == want.tobytes()
    left = net.part_rect(slice(1, 7), slice(-5, None))
    assert left.run(image, memory)[name].tobytes() == want[:, :, 1:7, -5:].tobytes()
    assert (left.rows, left.columns) == (slice(1, 7), slice(want.shape[3] - 5, want.shape[3]))


def test_as_the_program(program, tmp_path):
    """The same rows as `run --part`, and fewer MACs than a whole run's."""
    program("run", "fsrcnn", "synthetic:61x47", "--part", "2/3", "-o", tmp_path / "part.npy")
    part = rfexec.open("fsrcnn", size=(61, 47)).part(2, 3)
    got = part.run("synthetic:61x47")[part.outputs[0].name]
    assert got.tobytes() == np.load(tmp_path / "part.npy").tobytes()
    assert part.plan().macs < 0.8 * part.whole.plan().macs


def test_needs():
    image = Watched(random_image(200, 40))
    part = rfexec.open("fsrcnn", size=(200, 40)).part(2, 4)
    assert part.needs[1] == slice(0, 40) and 40 < part.needs[0].start < part.needs[0].stop < 110
    part.run(image)
    assert image.rows == [part.needs[0].start, part.needs[0].stop]
    rows = [rows for rows, _ in part.bands(image, "16MiB")]
    assert rows[0].start == 0 and rows[-1].stop == part.outputs[0].shape[2] == 100


def test_lives():
    """A part keeps its network; both go, whichever is freed first, with runners too."""
    image = random_image(40, 40)
    part = rfexec.open("fsrcnn", size=(40, 40)).part(1, 2)
    gc.collect()
    runner = part.prepare()
    name = part.outputs[0].name
    assert runner.run(image)[name].tobytes() == part.run(image)[name].tobytes()
    with pytest.raises(rfexec.UsageError, match="running"):
        part.run(image, progress=lambda done, total: part.whole.run(image))
    circle = [part, runner, part.whole]
    circle.append(circle)
    whole = part.whole
    assert len(whole._parts) == 1
    del part, runner, circle, whole
    gc.collect()
    other = rfexec.open("fsrcnn", size=(40, 40))
    other.part(1, 2)
    gc.collect()
    assert not other._parts
    other.__del__()  # as at the interpreter's end: nothing twice
    other._handle.value = None


def test_refusals():
    net = rfexec.open("squeezenet1_1", size=(64, 64))
    with pytest.raises(rfexec.UsageError, match="of at most 1 rows"):
        net.part(1, 2)
    with pytest.raises(rfexec.UsageError, match="no map"):
        net.part_rect(slice(0, 1))
    net = rfexec.open("fsrcnn", size=(40, 40))
    for wrong in ((0, 2), (3, 2), (1, 1000)):
        with pytest.raises(rfexec.UsageError, match="part"):
            net.part(*wrong)
    with pytest.raises(rfexec.UsageError, match="no output 'x'"):
        net.part(1, 2, output="x")
    with pytest.raises(rfexec.UsageError, match="slice"):
        net.part_rect(slice(5, 5))
    with pytest.raises(rfexec.UsageError, match="no parts"):
        net.part(1, 2).part(1, 2)
