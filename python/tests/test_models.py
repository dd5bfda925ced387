"""Models in memory: the file's bits, its bytes counted and kept alive, refusals."""

import gc
import mmap

import pytest
import rfexec
from conftest import TOP, random_image

PATH = TOP / "data" / "defect_net.onnx"
DATA = PATH.read_bytes()
SIZE = (64, 80)


class Proto:
    """As onnx.ModelProto serialises itself."""

    def SerializeToString(self):
        return DATA


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: Proto()])
def test_same_bits(kind):
    image = random_image(*SIZE)
    want = rfexec.open(PATH, SIZE).run(image)["defects"].tobytes()
    net = rfexec.open(kind(DATA), SIZE)
    gc.collect()  # what was given is the network's alone
    assert net.run(image)["defects"].tobytes() == want
    assert net.run(image, memory="16MiB")["defects"].tobytes() == want
    assert f"{len(DATA):,} bytes" in repr(net)


def test_mapped_file():
    with open(PATH, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        net = rfexec.open(data, SIZE)
        assert net.outputs == rfexec.open(PATH, SIZE).outputs
        del net
        gc.collect()  # else the mapping could not be closed


def test_bytes_are_counted():
    file, memory = rfexec.open(PATH, SIZE).plan(), rfexec.open(DATA, SIZE).plan()
    assert memory.reserve_bytes == file.reserve_bytes + len(DATA)


def test_onnx_model():
    onnx = pytest.importorskip("onnx")  # for Pythons that it has no wheel for
    image = random_image(*SIZE)
    net = rfexec.open(onnx.load(str(PATH)), SIZE)
    assert net.run(image)["defects"].tobytes() == rfexec.open(PATH, SIZE).run(image)["defects"].tobytes()


def test_session():
    image = random_image(*SIZE)
    (want,) = rfexec.InferenceSession(PATH).run(None, {"image": image})
    (got,) = rfexec.InferenceSession(DATA).run(None, {"image": image})
    assert got.tobytes() == want.tobytes()


def test_refusals():
    for model, words in [(b"", "empty"), (DATA[: len(DATA) // 2], "memory"), (b"\x89PNG", "memory")]:
        with pytest.raises(rfexec.RefusedError, match=words):
            rfexec.open(model, SIZE)
    for model in (7, None, [1, 2]):
        with pytest.raises(rfexec.UsageError, match="model is a"):
            rfexec.open(model, SIZE)
    with pytest.raises(rfexec.UsageError, match="gaps"):
        rfexec.open(memoryview(DATA)[::2], SIZE)
