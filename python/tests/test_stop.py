"""Ctrl-C, cancel() and exceptions of callbacks end a run; the network can run again."""

import threading
import time

import numpy as np
import pytest
import rfexec
from conftest import random_image

INTERRUPTED = """
import os, signal, threading, time
import numpy as np, rfexec
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs behind them
net = rfexec.open("resnet50", size=(2048, 2048))
image = np.zeros((1, 3, 2048, 2048), np.float32)

class Lazy:
    shape = image.shape
    def __getitem__(self, index):
        return image[index]

def go(name, run):
    delay = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    delay.start()
    try:
        run()
        print(name, "ran to its end")
    except KeyboardInterrupt:
        print(name, "interrupted")

go("array", lambda: net.run(image))
go("source", lambda: net.run(Lazy()))
go("progress", lambda: net.run(image, progress=lambda done, total: None))
go("bands", lambda: [None for _ in rfexec.open("fsrcnn", size=(2048, 2048)).bands(image)])
runner = net.prepare()
go("runner", lambda: runner.run(image))

class Handled(Exception):
    pass

def handler(*_):
    raise Handled("by the program's own")
signal.signal(signal.SIGINT, handler)
try:
    go("handler", lambda: net.run(image))
except Handled as e:
    print("handler", e)
calm = []
signal.signal(signal.SIGINT, lambda *_: calm.append(1))
go("calm", lambda: rfexec.open("squeezenet1_1", size=(1024, 1024)).run(image[:, :, ::2, ::2]))
time.sleep(0.3)
print(calm)
"""


def test_interrupts(python):
    done = python(INTERRUPTED, timeout=300)
    assert done.stdout.splitlines() == [
        "array interrupted",
        "source interrupted",
        "progress interrupted",
        "bands interrupted",
        "runner interrupted",
        "handler by the program's own",
        "calm ran to its end",
        "[1]",
    ], done.stderr
    assert done.stderr == ""


@pytest.fixture(scope="module")
def net():
    return rfexec.open("fsrcnn:2", size=(500, 400))


def test_cancel(net):
    image = random_image(500, 400)
    seen = []

    def progress(done, total):
        seen.append((done, total))
        if len(seen) == 1:
            threading.Thread(target=net.cancel).start()
            time.sleep(0.2)

    with pytest.raises(rfexec.Cancelled, match="stopped"):
        net.run(image, memory="24MiB", progress=progress)
    net.cancel()  # nothing runs
    net.run(image)


def test_progress(net):
    seen = []
    net.run(random_image(500, 400), memory="24MiB", progress=lambda d, t: seen.append((d, t)))
    assert 0 <= seen[0][0] < seen[-1][0] == seen[-1][1]
    assert [d for d, _ in seen] == sorted(d for d, _ in seen)


class Bar:
    """What tqdm's bar has."""

    n, total = 0, None

    def update(self, by):
        self.n += by


def test_bar(net):
    bar = Bar()
    net.run(random_image(500, 400), memory="24MiB", progress=bar)
    assert bar.n == bar.total > 1


def test_observer(net):
    """Final rectangles make up the output once; numbers rise; bits are those of a run without."""
    image, steps = random_image(500, 400), []
    got = net.run(image, memory="24MiB", observer=steps.append)
    (output,) = net.outputs
    times = np.zeros(output.shape[2:], int)
    for s in steps:
        if s.output is not None:
            assert s.output == output.name and s.work in ("write", "compute")
            times[s.row : s.row + s.rows, s.column : s.column + s.columns] += 1
    assert (times == 1).all()
    assert [s.step for s in steps] == list(range(1, len(steps) + 1))
    assert [s.seconds for s in steps] == sorted(s.seconds for s in steps)
    forecast = net.plan("24MiB")
    assert {s.planned_bytes for s in steps} == {forecast.peak_bytes}
    assert all(forecast.activation_bytes < s.held_bytes < forecast.peak_bytes for s in steps)
    assert [s.done for s in steps] == sorted(s.done for s in steps)
    assert {s.total for s in steps} == {steps[0].total} and steps[0].done < steps[0].total
    layers = net.analyze()
    assert all(s.name == layers[s.layer].name for s in steps)
    assert steps[-1].stage == steps[-1].n_stages - 1 == len(net.stages("24MiB")) - 1
    want = net.run(image)[output.name]
    assert got[output.name].tobytes() == want.tobytes()
    with net.prepare(memory="24MiB") as runner:
        again = []
        runner.run(image, observer=again.append)
    assert [s[:15] for s in again] == [s[:15] for s in steps]  # all but held_bytes and seconds
    with pytest.raises(rfexec.UsageError, match="observer is 3"):
        net.run(image, observer=3)


def test_observer_of_a_sum():
    """An output that is summed up row by row is final when the sum is, in one pixel."""
    onnx = pytest.importorskip("onnx")
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = make.make_graph(
        [
            make.make_node("InstanceNormalization", ["image", "one", "one"], ["norm"]),
            make.make_node("GlobalAveragePool", ["image"], ["mean"]),
        ],
        "sums", [make.make_tensor_value_info("image", kind, (1, 3, 640, 480))],
        [make.make_tensor_value_info("norm", kind, (1, 3, 640, 480)),
         make.make_tensor_value_info("mean", kind, (1, 3, 1, 1))],
        [make.make_tensor("one", kind, [3], [1.0, 2.0, 3.0])],
    )  # fmt: skip
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    net, image, steps = rfexec.open(model), random_image(640, 480), []
    with pytest.raises(rfexec.BudgetError) as failure:
        net.plan(memory=1)
    got = net.run(image, memory=failure.value.forecast.peak_bytes, observer=steps.append)
    assert np.allclose(got["mean"][0, :, 0, 0], image[0].mean(axis=(1, 2)), atol=1e-6)
    assert {s.work for s in steps} >= {"read", "sum", "compute", "write"}
    assert sorted({s.stage for s in steps}) == list(range(steps[0].n_stages)) != [0]
    final = [s for s in steps if s.output == "mean"]
    assert [(s.row, s.column, s.rows, s.columns, s.channels) for s in final] == [(0, 0, 1, 1, 3)]
    rows = [row for s in steps if s.output == "norm" for row in range(s.row, s.row + s.rows)]
    assert sorted(set(rows)) == list(range(640))


def test_exceptions_of_callbacks(net):
    def fail(*_):
        raise LookupError("mine")

    class Failing:
        shape = (1, 3, 500, 400)

        def __getitem__(self, index):
            fail()

    image = random_image(500, 400)
    with pytest.raises(LookupError, match="mine"):
        net.run(image, progress=fail)
    with pytest.raises(LookupError, match="mine"):
        net.run(image, observer=fail)
    with pytest.raises(LookupError, match="mine"):
        net.run(Failing())
    with pytest.raises(LookupError, match="mine"):
        list(net.bands(Failing(), memory="24MiB"))


def test_a_callback_may_not_use_its_network(net):
    image = random_image(500, 400)
    with pytest.raises(rfexec.UsageError, match="is running"):
        net.run(image, progress=lambda *_: net.run(image))
    with pytest.raises(rfexec.UsageError, match="is running"):
        for _ in net.bands(image, memory="24MiB"):
            net.plan()
    assert net.run(image)[net.outputs[0].name].any()
    assert np.isfinite(net.run(image)[net.outputs[0].name]).all()
