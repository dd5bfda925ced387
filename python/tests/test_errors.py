"""Errors: an exception for each code, with the C text."""

import re
import subprocess

import numpy as np
import pytest
import rfexec
from conftest import PROGRAM
from rfexec._sizes import parse_bytes


@pytest.mark.parametrize(
    "text, n",
    [
        (None, 0),
        (1, 1),
        (np.int64(4096), 4096),
        ("4096", 4096),
        ("64MiB", 64 << 20),
        ("64M", 64 << 20),
        ("64m", 64 << 20),
        ("64 MB", 64000000),
        ("1.5GiB", 3 << 29),
        (".5GiB", 1 << 29),
        ("0.0000019KiB", 0),
        ("2TiB", 2 << 40),
        ("7B", 7),
    ],
)
def test_sizes_as_the_program(text, n):
    if n == 0 and text is not None:
        with pytest.raises(rfexec.UsageError):
            parse_bytes(text)
    else:
        assert parse_bytes(text) == n


@pytest.mark.parametrize(
    "memory", ["", "64Mi", "64X", "-1", "0", ".", ".MiB", "1e9", " 4", "9999999999TiB", 0, -1, 1.5, True]
)
def test_refused_sizes(memory):
    with pytest.raises(rfexec.UsageError, match="such as '64MiB'"):
        parse_bytes(memory)


def test_programs_sizes():
    """Both name the budget that they understood, where it is too small."""
    net = rfexec.open("squeezenet1_1", size=(128, 96))
    for text in ["1.5MiB", "1.25M", "3MB", "0.001GiB", "2500 KiB", "1234567", ".75m"]:
        with pytest.raises(rfexec.BudgetError) as failure:
            net.plan(text, threads=1)
        plan = [PROGRAM, "plan", "squeezenet1_1", "--size", "128x96", "--threads", "1"]
        said = subprocess.run([*plan, "--memory", text], capture_output=True, text=True)
        mine, other = (re.search(r"the budget is [^:]*:", t) for t in (str(failure.value), said.stderr))
        assert said.returncode == 4 and mine[0] == other[0], (str(failure.value), said.stderr)


@pytest.mark.parametrize(
    "model, words",
    [("squeezenet1_2", "squeezenet1_1"), ("/no/such.onnx", "No such file"), (__file__, "test_errors.py")],
)
def test_refused_models(model, words):
    with pytest.raises(rfexec.RefusedError, match=words) as failure:
        rfexec.open(model, size=(64, 64))
    assert failure.value.code == 3 and isinstance(failure.value, ValueError)


def test_refused_pictures():
    net = rfexec.open("squeezenet1_1", size=(64, 64))
    with pytest.raises(rfexec.RefusedError, match="no/such.png"):
        net.run("/no/such.png")
    with pytest.raises(rfexec.RefusedError, match="3x64x64.*3x65x64"):
        net.run("synthetic:65x64")
    with pytest.raises(rfexec.RefusedError):
        rfexec.picture_size(__file__)


def test_usage():
    for options, words in [
        ({"size": (0, 4)}, "size is"),
        ({"size": (4,)}, "size is"),
        ({"size": "4x4"}, "size is"),
        ({"conv": "fft"}, "conv is 'fft'"),
        ({"seed": -1}, "seed"),
        ({"padding": "mirror"}, "padding is 'mirror'"),
        ({"int8": "fast"}, "int8 is 'fast': 'ort', 'spec'"),
        ({"pad_to": -1}, "pad_to is -1"),
        ({"pad_to": 2**64}, "pad_to is 18446744073709551616: a whole number"),
    ]:
        with pytest.raises(rfexec.UsageError, match=words):
            rfexec.open("squeezenet1_1", **options)
    with pytest.raises(rfexec.UsageError, match=r"model is 'squeezenet1_1\\x00': .* NUL"):
        rfexec.open("squeezenet1_1\0")
    net = rfexec.open("squeezenet1_1", size=(64, 64))
    for options, words in [
        ({"threads": -1}, "threads"),
        ({"threads": -(2**32)}, "threads is -4294967296: a whole number"),
        ({"spill": ".\0"}, "spill .* NUL"),
        ({"threads": 1000000}, "threads"),
        ({"threads": "two"}, "threads"),
        ({"progress": 7}, "progress"),
        ({"layout": "CHWN"}, "layout is 'CHWN'"),
        ({"memory": "lots"}, "memory is 'lots'"),
    ]:
        with pytest.raises(rfexec.UsageError, match=words):
            net.run(np.zeros((3, 64, 64), np.float32), **options)


def test_budgets():
    net = rfexec.open("fsrcnn", size=(300, 200))
    image = np.zeros((3, 300, 200), np.float32)
    with pytest.raises(rfexec.BudgetError, match="at least") as failure:
        net.plan(memory="1MiB", threads=1)
    least = failure.value.forecast
    assert least.peak_bytes == sum(n for _, n, _ in least._parts())
    assert net.plan(memory=least.peak_bytes, threads=1).peak_bytes <= least.peak_bytes
    net.run(image, memory=least.peak_bytes, threads=1)
    with pytest.raises(rfexec.BudgetError) as failure:
        net.run(image, memory=least.peak_bytes - 1, threads=1)
    assert isinstance(failure.value, MemoryError) and failure.value.code == 4
    with pytest.raises(rfexec.BudgetError):
        net.prepare(memory=least.peak_bytes - 1, threads=1)
    with pytest.raises(rfexec.BudgetError):
        next(net.bands(image, memory=least.peak_bytes - 1, threads=1))


def test_forecasts():
    net = rfexec.open("fsrcnn", size=(300, 200))
    whole, small = net.plan(), net.plan(memory="16MiB")
    assert small.peak_bytes <= 16 << 20 < whole.peak_bytes
    assert whole.macs == whole.macs_whole and whole.macs_factor == 1 <= small.macs_factor
    assert "stream" in small.words and str(small).startswith("peak 1")
    page = small._repr_html_()
    assert page.count("<rect") == page.count("<tr>") >= 3 and "<svg" in page
    assert net.plan(picture="synthetic:300x200").peak_bytes > 0
