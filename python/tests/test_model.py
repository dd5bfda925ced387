"""Models for any size and plans that several threads share, beside networks of one size."""

import json
import threading

import numpy as np
import pytest
import rfexec
from conftest import random_image


@pytest.fixture
def network_file(tmp_path, program):
    program("export", "squeezenet1_1", "--size", "64x64", "-o", "net.onnx")
    return tmp_path / "net.onnx"


def alone(model, image):
    with rfexec.open(model, size=image.shape[-2:]) as net:
        return net.run(image)


def test_sizes(network_file):
    with rfexec.Model(network_file) as model:
        for rows, columns in ((64, 64), (33, 71), (64, 64), (90, 40)):
            image = random_image(rows, columns)
            want = alone(network_file, image)
            got = model.run(image, memory="64MiB")
            assert got.keys() == want.keys()
            for name, array in want.items():
                assert np.array_equal(got[name], array)


def test_plans_are_kept(network_file, monkeypatch):
    made = []
    make = rfexec.Model.plan

    def count(self, size=None, *arguments, **named):
        made.append(size)
        return make(self, size, *arguments, **named)

    monkeypatch.setattr(rfexec.Model, "plan", count)
    model = rfexec.Model(network_file)
    images = [random_image(40, 48), random_image(48, 40)]
    for image in images + images:
        model.run(image)
    assert made == [(40, 48), (48, 40)]
    for image in images + images:  # under a budget there is room for one plan
        model.run(image, memory="64MiB")
    assert made[2:] == [(40, 48), (48, 40)] * 2


def test_pictures_layouts_and_bytes(network_file, tmp_path, program):
    (tmp_path / "net2.onnx").write_bytes(network_file.read_bytes())
    model = rfexec.Model((tmp_path / "net2.onnx").read_bytes())
    picture = "synthetic:70x50:3"
    with rfexec.open(network_file, image=picture) as net:
        want = next(iter(net.run(picture).values()))
    assert np.array_equal(next(iter(model.run(picture).values())), want)
    image = random_image(48, 56)
    want = next(iter(alone(network_file, image).values()))
    last = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    assert np.array_equal(next(iter(model.run(last).values())), want)
    assert np.array_equal(next(iter(model.run(last, layout="NHWC").values())), want)
    batch = np.concatenate([image, image + 1])
    got = next(iter(model.run(batch).values()))
    assert np.array_equal(got[:1], want)


def test_threads(network_file):
    model = rfexec.Model(network_file)
    images = [random_image(40, 48, seed=n) for n in range(3)]
    wanted = [next(iter(alone(network_file, image).values())) for image in images]
    plan = model.plan((40, 48), memory="64MiB", threads=1)
    wrong = []

    def work(first):
        for n in range(12):
            k = (first + n) % 3
            got = next(iter(plan.run(images[k]).values()))
            if not np.array_equal(got, wanted[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_saved_plan(network_file, tmp_path, program):
    model = rfexec.Model(network_file)
    with rfexec.open(network_file, size=(256, 256)) as net:
        with pytest.raises(rfexec.BudgetError) as least:
            net.plan(memory=1)
    plan = model.plan((256, 256), memory=least.value.needed_bytes, threads=1)
    assert plan.forecast.peak_bytes <= least.value.needed_bytes
    plan.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["size"] == [256, 256]
    again = model.plan((256, 256), plan_file=tmp_path / "plan.json")
    assert again.forecast.words == plan.forecast.words
    assert len(again.stages()) == len(plan.stages())
    said = json.loads(
        program("plan", network_file, "--size", "256x256", "--plan", "plan.json", "--json")
    )
    assert said["plan"]["text"] == plan.forecast.words


def test_files(tmp_path):
    model = rfexec.Model("fsrcnn")
    image = random_image(30, 34)
    assert model.run(image, output=tmp_path / "a.npy", memory="64MiB") == {}
    want = next(iter(alone("fsrcnn", image).values()))
    assert np.array_equal(np.load(tmp_path / "a.npy"), want)


def test_refusals(network_file):
    with pytest.raises(rfexec.RefusedError):
        rfexec.Model("not there.onnx")
    with pytest.raises(rfexec.UsageError):
        rfexec.Model(network_file, conv="slow")
    model = rfexec.Model(network_file)
    with pytest.raises(rfexec.BudgetError):
        model.plan((64, 64), memory=1)
    plan = model.plan((64, 64))
    with pytest.raises(rfexec.UsageError):
        plan.run(random_image(65, 64))
    plan.close()
    with pytest.raises(rfexec.UsageError):
        plan.run(random_image(64, 64))
    model.close()
    with pytest.raises(rfexec.UsageError):
        model.plan((64, 64))
