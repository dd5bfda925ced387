"""Arrays of several images: the bits of as many runs, in every form that arrays come in."""

import numpy as np
import pytest
import rfexec
from conftest import TOP, random_image


@pytest.fixture(scope="module")
def net():
    return rfexec.open("posenet", size=(65, 49))


@pytest.fixture(scope="module")
def images():
    return np.concatenate([random_image(65, 49, seed=n) for n in range(3)])


def singles(net, images):
    """The outputs of runs of each image, one behind the other."""
    parts = [net.run(image) for image in images]
    return {name: b"".join(part[name].tobytes() for part in parts) for name in parts[0]}


def test_bits(net, images):
    want = singles(net, images)
    for memory, threads in [(None, 0), ("64MiB", 1)]:
        got = net.run(images, memory, threads)
        for info in net.outputs:
            assert got[info.name].shape == (3, *info.shape[1:])
            assert got[info.name].tobytes() == want[info.name]
    last = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    got = net.run(last, layout="NHWC")
    assert all(got[name].tobytes() == want[name] for name in want)
    got = net.run(images[::-1][:, :, :, ::-1])  # in steps below zero
    flipped = np.ascontiguousarray(images[::-1][:, :, :, ::-1])
    want = singles(net, flipped)
    assert all(got[name].tobytes() == want[name] for name in want)


def test_runner_and_out(net, images):
    want = singles(net, images)
    first = net.outputs[0]
    out = np.full((3, *first.shape[1:]), 7, np.float32)
    told = []
    with net.prepare("64MiB") as runner:
        got = runner.run(
            images, out, lambda done, total: told.append((done, total)), [first.name]
        )
        assert list(got) == [first.name] and got[first.name] is out
        assert out.tobytes() == want[first.name]
        (one,) = runner.run(images[1], outputs=[first.name]).values()
        assert one.tobytes() == out[1].tobytes()
        with pytest.raises(rfexec.UsageError, match=r"float32 of \(3, "):
            runner.run(images, out[:2], outputs=[first.name])
        with pytest.raises(rfexec.UsageError, match="overlaps the image"):
            same = np.zeros((3, 3, 65, 49), np.float32)
            runner.run(same, same.reshape(-1)[: out.size].reshape(out.shape), outputs=[first.name])
    assert told[-1][0] == told[-1][1] and told == sorted(told)


def test_vectors():
    net = rfexec.open("squeezenet1_1", size=(64, 96))
    images = np.concatenate([random_image(64, 96, seed=n) for n in range(2)])
    (got,) = net.run(images).values()
    assert got.shape == (2, 1000)
    assert got.tobytes() == b"".join(a.tobytes() for i in images for a in net.run(i).values())


def test_lazy_images(net, images):
    class Stored:  # gives parts alone
        shape, dtype = images.shape, images.dtype
        asked = []

        def __getitem__(self, index):
            self.asked.append(index[0])
            return images[index]

    want = singles(net, images)
    stored = Stored()
    got = net.run(stored)
    assert all(got[name].tobytes() == want[name] for name in want)
    assert sorted(set(stored.asked)) == [0, 1, 2]


def test_parts(net, images):
    first = net.outputs[0].name
    parts = [net.part(k, 2).run(images)[first] for k in (1, 2)]
    assert np.concatenate(parts, axis=2).tobytes() == singles(net, images)[first]


def test_bands_take_one(net, images):
    with pytest.raises(rfexec.UsageError, match="one image at a time"):
        list(net.bands(images))


def test_the_program_gives_the_same(program, tmp_path):
    model = TOP / "data" / "defect_net.onnx"
    images = np.concatenate([random_image(96, 64, seed=n) for n in range(3)])
    np.save(tmp_path / "images.npy", images)
    program("run", model, "images.npy", "-o", "maps.npy", "--memory", "32MiB")
    want = np.load(tmp_path / "maps.npy")
    got = rfexec.open(model, (96, 64)).run(images)["defects"]
    assert got.shape == want.shape and got.tobytes() == want.tobytes()
