"""Memory as the kernel counts it: a 4096 x 4096 array in 64 MiB beside the array itself."""

CODE = """
import tracemalloc
import numpy as np, rfexec

def high_water():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

image = np.full((1, 3, 4096, 4096), 0.5, np.float32)
net = rfexec.open({model!r}, size=(4096, 4096))
out = np.full(net.outputs[0].shape, 1, np.float32)
before = high_water()
assert before > image.nbytes + out.nbytes
tracemalloc.start()
net.run(image, memory="64MiB", out=out)
taken, of_python = high_water() - before, tracemalloc.get_traced_memory()[1]
assert out.std() > 0
print(taken, of_python)
"""


def test_a_large_array_in_64_mib(python):
    from conftest import TOP

    done = python(CODE.format(model=str(TOP / "data" / "defect_net.onnx")), timeout=300)
    assert done.returncode == 0, done.stderr
    taken, of_python = map(int, done.stdout.split())
    assert 4 << 20 < taken <= 64 << 20
    assert of_python < 1 << 20
