"""The installed package beside the program of the same build: RFEXEC_PROGRAM, or build/rfexec."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TOP = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("RFEXEC_PROGRAM", TOP / "build" / "rfexec"))
_counts = {"passed": 0, "failed": 0}


@pytest.fixture
def program(tmp_path):
    """Runs the program; gives its standard output."""

    def run(*arguments):
        done = subprocess.run(
            [PROGRAM, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def python():
    """Runs lines in a Python of their own."""

    def run(code, timeout=120):
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout
        )

    return run


def random_image(rows, columns, channels=3, seed=1):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((1, channels, rows, columns), dtype=np.float32)


def pytest_runtest_logreport(report):
    if report.failed:
        _counts["failed"] += 1
    elif report.when == "call" and report.passed:
        _counts["passed"] += 1


def pytest_unconfigure():  # the last line, as tools/count_tests.sh reads it
    print("{passed} passed, {failed} failed".format(**_counts))
