"""Arrays that are given: used where they lie, or refused in words."""

import numpy as np
import pytest
import rfexec
from conftest import random_image


@pytest.fixture(scope="module")
def net():
    return rfexec.open("posenet", size=(65, 49))


def test_inputs_and_outputs(net):
    (image,) = net.inputs
    assert image.shape == (1, 3, 65, 49) and image.dtype == "float32"
    assert image.nbytes == 4 * 3 * 65 * 49
    assert len(net.outputs) == 4
    assert all(len(o.shape) == 4 for o in net.outputs)
    assert "posenet" in repr(net) and "65" in repr(net)


def test_out(net):
    image = random_image(65, 49)
    want = net.run(image)
    assert list(want) == [o.name for o in net.outputs]
    arrays = {name: np.full_like(a, 7) for name, a in want.items()}
    got = net.run(image, out=arrays)
    assert all(got[n] is arrays[n] for n in want)
    assert all(arrays[n].tobytes() == want[n].tobytes() for n in want)
    listed = [np.full_like(a, 7) for a in want.values()]
    got = net.run(image, memory="64MiB", out=listed)
    assert all(a is b for a, b in zip(got.values(), listed))
    assert [a.tobytes() for a in listed] == [a.tobytes() for a in want.values()]
    last = net.outputs[-1].name
    one = np.full_like(want[last], 7)
    got = net.run(image, outputs=[last], out=one)
    assert list(got) == [last] and got[last] is one
    assert one.tobytes() == want[last].tobytes()
    assert list(net.run(image, outputs=last)) == [last]


@pytest.mark.parametrize(
    "image, words",
    [
        (np.zeros((1, 3, 65, 49), np.int16), r"float32.*int16.*astype"),
        (np.zeros((1, 3, 65, 49), np.float64), r"float32.*float64"),
        (np.zeros((1, 3, 65, 49), ">f8"), r"float32.*>f8"),
        (np.zeros((1, 3, 49, 65), np.float32), r"\(1, 3, 65, 49\).*\(1, 3, 49, 65\)"),
        (np.zeros((2, 3, 65, 48), np.float32), r"one image at a time"),
        (np.zeros((65, 49), np.float32), r"\(65, 49\)"),
        ([[1.0]], r"type list"),
        (None, r"type NoneType"),
    ],
)
def test_refused_images(net, image, words):
    with pytest.raises(rfexec.UsageError, match=words):
        net.run(image)
    with net.prepare() as runner, pytest.raises(rfexec.UsageError, match=words):
        runner.run(image)


class Wrong:
    """An array-like that does not give what it said."""

    def __init__(self, given):
        self.shape, self.given = (1, 3, 65, 49), given

    def __getitem__(self, index):
        rows, columns = (s.stop - s.start for s in index[2:])
        return self.given(rows, columns)


@pytest.mark.parametrize(
    "given, words",
    [
        (lambda r, c: np.zeros((3, r, c)), "float64"),
        (lambda r, c: np.zeros((3, r + 1, c), np.float32), "wanted: float32 of"),
        (lambda r, c: 1 // 0, "division"),
    ],
)
def test_refused_sources(net, given, words):
    with pytest.raises((rfexec.UsageError, ZeroDivisionError), match=words):
        net.run(Wrong(given))
    net.run("synthetic:65x49")  # and the network is as good as before


def test_refused_outs(net):
    image = random_image(65, 49)
    names = [o.name for o in net.outputs]
    shape = net.outputs[0].shape
    both = np.zeros((1, 3, 65, 49), np.float32)
    frozen = np.zeros(shape, np.float32)
    frozen.flags.writeable = False
    for out, words in [
        ({names[0]: np.zeros(shape)}, "float64"),
        ({names[0]: np.zeros(shape[1:], np.float32)}, "wanted float32 of"),
        ({names[0]: np.zeros(shape, np.float32, order="F")}, "C-contiguous"),
        ({names[0]: frozen}, "writable"),
        ({names[0]: [1.0]}, "list"),
        ({"nothing": frozen}, "no output 'nothing'; there are '"),
        ([frozen], "1 arrays for 4 outputs"),
    ]:
        with pytest.raises(rfexec.UsageError, match=words):
            net.run(image, out=out)
    with pytest.raises(rfexec.UsageError, match="no output 'x'"):
        net.run(image, outputs=["x"])
    up = rfexec.open("fsrcnn:2", size=(40, 40))
    room = np.zeros((1, 3, 80, 80), np.float32)
    with pytest.raises(rfexec.UsageError, match="overlaps the image"):
        up.run(room[:, :, :40, :40], out=room)
    assert both.any() == room.any() == False  # noqa: E712
