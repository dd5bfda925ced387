"""Measures what a run takes in a program that embeds rfexec, beside the rfexec program itself.

    sh python/tests/run.sh build                     # installs the Python package, once
    python3 tools/scripts/measure_embedded.py build [ROUNDS]

Three ways to the same .npy file, one process each, alternating: `rfexec run -o`, examples/file_to_map.c,
and Python (open, run and numpy.save; starting the interpreter and importing are shown, not counted). Each on
a machine that does nothing else, which is for the caller to see to, and beside two processes that never
wait. Printed: medians of the seconds, and of the ratios to the program within a round; exit code 1
when one is above 1.05, or when the files differ.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST = 1.05
CASES = [
    (os.path.join(TOP, "data", "defect_net.onnx"), "synthetic:4096x3072", 64 << 20),
    ("mobilenet_v2", "synthetic:4096x4096", 64 << 20),
    ("resnet50", "synthetic:1536x1536", 256 << 20),
    ("fsrcnn", "synthetic:2048x2048", 64 << 20),
]
PYTHON = """
import sys, time
import numpy, rfexec
start = time.perf_counter()
model, picture, path, memory = sys.argv[1:]
net = rfexec.open(model, size=rfexec.picture_size(picture)[:2])
numpy.save(path, net.run(picture, memory=int(memory))[net.outputs[0].name])
print(time.perf_counter() - start)
"""


def timed(command):
    """Seconds from the start of the process to its end, and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout


def values_of(path):
    with open(path, "rb") as file:
        data = file.read()
    return data[10 + int.from_bytes(data[8:10], "little") :]


class Ways:
    def __init__(self, build, work):
        self.program = os.path.join(build, "rfexec")
        self.python = os.path.join(build, "python-venv", "bin", "python")
        self.example = os.path.join(work, "file_to_map")
        self.out = [os.path.join(work, name + ".npy") for name in ("program", "c", "python")]
        subprocess.run(
            [os.environ.get("CC", "cc"), "-O2", "-std=c11", os.path.join(TOP, "examples", "file_to_map.c"),
             "-I" + os.path.join(TOP, "rfexec", "include"), os.path.join(build, "librfexec.so"),
             "-Wl,-rpath," + build, "-o", self.example], check=True)

    def round(self, model, picture, memory):
        """Seconds of the program, C, Python, and of Python with its start."""
        memory = str(memory)
        a, _ = timed([self.program, "run", model, picture, "--memory", memory, "-o", self.out[0]])
        b, _ = timed([self.example, model, picture, self.out[1], memory])
        whole, said = timed([self.python, "-c", PYTHON, model, picture, self.out[2], memory])
        return a, b, float(said), whole

    def same(self):
        return len({values_of(path) for path in self.out}) == 1


def measure(ways, rounds, busy):
    """Whether all ratios are small enough and all files the same."""
    fine = True
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        for model, picture, memory in CASES:
            ways.round(model, picture, memory)  # files in the page cache
            taken = [ways.round(model, picture, memory) for _ in range(rounds)]
            a, b, c, whole = (statistics.median(t[k] for t in taken) for k in range(4))
            in_c, in_python = (statistics.median(t[k] / t[0] for t in taken) for k in (1, 2))
            same = ways.same()
            good = same and max(in_c, in_python) <= MOST
            fine = fine and good
            print("%-15s %-20s %3d MiB  %d busy  %7.3f s  C %7.3f s x%.3f  Python %7.3f s x%.3f (%.3f s with its start)  %s"
                  % (os.path.basename(model), picture, memory >> 20, busy, a, b, in_c, c, in_python, whole,
                     "met" if good else "missed" if same else "OTHER VALUES"), flush=True)
    finally:
        for other in others:
            other.kill()
            other.wait()
    return fine


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    rounds = int(sys.argv[2]) if len(sys.argv) == 3 else 11
    with tempfile.TemporaryDirectory() as work:
        ways = Ways(os.path.abspath(sys.argv[1]), work)
        fine = [measure(ways, rounds, busy) for busy in (0, 2)]
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
