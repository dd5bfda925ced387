"""What the documentation shows, and the examples in Python, do what they say."""

import doctest
import subprocess
import sys

import numpy as np
import pytest
import rfexec
from conftest import TOP


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that has the tree's data."""
    (tmp_path / "data").symlink_to(TOP / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page, least", [("docs/python.md", 15), ("README.md", 3)])
def test_pages(place, page, least):
    # numpy 1 shows a truth as True, numpy 2 as np.True_
    text = (TOP / page).read_text()
    if int(np.__version__.split(".")[0]) < 2:
        text = text.replace("np.True_", "True")
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert len(test.examples) >= least
    said = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


def test_large_map(place):
    example = TOP / "examples" / "large_map.py"
    done = subprocess.run(
        [sys.executable, example, "fsrcnn", "synthetic:200x100", "out.npy", "14MiB"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("rows") > 1 and done.stderr.endswith("to 400 of 400\n")
    want = rfexec.open("fsrcnn", (200, 100)).run("synthetic:200x100", threads=1)
    assert np.load("out.npy").tobytes() == next(iter(want.values())).tobytes()
