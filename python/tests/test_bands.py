"""Outputs in bands: together the bits of a run, in order, whatever the plan."""

import numpy as np
import pytest
import rfexec
from conftest import random_image
from rfexec import _bands, _c


def collect(net, image, memory, **options):
    name = options.get("output") or net.outputs[0].name
    shape = next(o.shape for o in net.outputs if o.name == name)
    got, next_row, count = np.full(shape, np.nan, np.float32), 0, 0
    for rows, band in net.bands(image, memory, **options):
        assert rows.start == next_row and band.dtype == np.float32 and band.flags.c_contiguous
        assert band.shape == (*shape[:2], rows.stop - rows.start, shape[3])
        got[:, :, rows], next_row, count = band, rows.stop, count + 1
    assert next_row == shape[2]
    return got, count


@pytest.mark.parametrize("memory", [None, "16MiB", "14MiB"])
def test_bands(memory):
    image = random_image(300, 200)
    net = rfexec.open("fsrcnn", size=(300, 200))
    want = net.run(image)[net.outputs[0].name]
    got, count = collect(net, image, memory)
    assert got.tobytes() == want.tobytes()
    assert count == 12 if memory is None else count > 2  # a stored map: 256 KiB, 54 rows, a band
    assert "stream" in net.plan(memory).words or memory is None


def test_bands_of_pictures_and_of_other_outputs():
    net = rfexec.open("posenet", size=(129, 97))
    want = net.run("synthetic:129x97")
    for info in net.outputs:
        for memory in (None, "32MiB"):
            got, _ = collect(net, "synthetic:129x97", memory, output=info.name)
            assert got.tobytes() == want[info.name].tobytes()


def test_strips_go_through_a_file():
    """A picture so wide that the least memory is a plan of column strips."""
    net = rfexec.open("fsrcnn:2", size=(40, 4000))
    with pytest.raises(rfexec.BudgetError) as least:
        net.plan(memory=1, threads=1)
    memory = least.value.forecast.peak_bytes
    assert "strips" in net.plan(memory, threads=1).words
    image = random_image(40, 4000)
    got, _ = collect(net, image, memory, threads=1)
    assert got.tobytes() == net.run(image)[net.outputs[0].name].tobytes()


def test_parts_in_any_order():
    """Rows in their order go on at once, all else waits in the file."""
    shape = (1, 3, 20, 9)
    want = random_image(20, 9)
    handed = []
    rows = _bands._Rows(shape, handed.append)

    def give(y, n, x, columns):
        part = np.ascontiguousarray(want[0, :, y : y + n, x : x + columns].transpose(1, 2, 0))
        rows.take(
            _c.Area(y, x, n, columns, 3, columns * 3, 3, 1),
            part.ctypes.data,
        )

    give(0, 4, 0, 9)
    give(4, 3, 0, 9)
    assert [r for r, _ in handed] == [slice(0, 4), slice(4, 7)]
    give(12, 8, 0, 5)
    give(7, 5, 3, 6)
    give(7, 5, 0, 3)
    give(12, 8, 5, 4)
    assert len(handed) == 2
    rows.finish()
    got = np.concatenate([band for _, band in handed], axis=2)
    assert got.tobytes() == want.tobytes()


def test_refused_outputs():
    net = rfexec.open("squeezenet1_1", size=(64, 64))
    with pytest.raises(rfexec.UsageError, match="is no map"):
        net.bands("synthetic:64x64")
    with pytest.raises(rfexec.UsageError, match="no output 'x'"):
        net.bands("synthetic:64x64", output="x")


def test_leaving_ends_the_run():
    net = rfexec.open("fsrcnn", size=(600, 400))
    image = random_image(600, 400)
    for rows, _ in net.bands(image, memory="24MiB"):
        if rows.start > 0:
            break
    net.run(image)  # at once
    bands = net.bands(image, memory="24MiB")
    next(bands)
    bands.close()
    net.plan()
