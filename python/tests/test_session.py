"""InferenceSession as programs use ONNX Runtime's."""

import numpy as np
import pytest
import rfexec
from conftest import TOP, random_image

MODEL = TOP / "data" / "defect_net.onnx"


def test_session():
    session = rfexec.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"], memory="64MiB")
    (image,) = session.get_inputs()
    (output,) = session.get_outputs()
    assert image.shape == [1, 3, "rows", "columns"] and image.type == "tensor(float)"
    for rows, columns in [(64, 96), (64, 96), (128, 40)]:
        array = random_image(rows, columns)
        want = rfexec.open(MODEL, (rows, columns)).run(array)[output.name]
        for names in (None, [output.name]):
            (got,) = session.run(names, {image.name: array})
            assert got.tobytes() == want.tobytes()


def test_a_model_with_a_size():
    session = rfexec.InferenceSession("squeezenet1_1")
    assert session.get_inputs()[0].shape == [1, 3, 224, 224]
    assert session.get_outputs()[0].shape == [1, 1000]
    (got,) = session.run(None, {"input": random_image(224, 224)})
    assert got.shape == (1, 1000)


def test_batches():
    session = rfexec.InferenceSession(MODEL, memory="64MiB")
    array = np.concatenate([random_image(64, 96, seed=n) for n in range(3)])
    (got,) = session.run(None, {"image": array})
    single = [session.run(None, {"image": array[n : n + 1]})[0] for n in range(3)]
    assert got.shape == (3, *single[0].shape[1:])
    assert got.tobytes() == b"".join(one.tobytes() for one in single)


def test_refusals():
    session = rfexec.InferenceSession(MODEL)
    array = random_image(64, 64)
    for feed, words in [
        ({}, "one input, 'image'"),
        ({"x": array}, "one input, 'image'"),
        ({"image": array[0]}, "channels, rows, columns"),
        ({"image": array.astype(np.float64)}, "float64"),
        ({"image": np.concatenate([array, array], axis=1)}, "6, 64, 64"),
    ]:
        with pytest.raises(rfexec.UsageError, match=words):
            session.run(None, feed)
    with pytest.raises(rfexec.UsageError, match="no output 'x'"):
        session.run(["x"], {"image": array})
    with pytest.raises(rfexec.RefusedError, match="No such file"):
        rfexec.InferenceSession("/no/such.onnx")
    with pytest.raises(rfexec.RefusedError, match="in memory"):
        rfexec.InferenceSession(b"onnx")
