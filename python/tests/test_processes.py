"""Threads and forks."""

import threading

import pytest
import rfexec
from conftest import random_image


def test_two_networks_in_two_threads():
    image = random_image(160, 150)
    names = ["squeezenet1_1", "fsrcnn:2"]
    want = {n: list(rfexec.open(n, (160, 150)).run(image).values())[0].tobytes() for n in names}
    wrong = []

    def work(name, memory):
        net = rfexec.open(name, (160, 150))
        for _ in range(3):
            if list(net.run(image, memory, threads=2).values())[0].tobytes() != want[name]:
                wrong.append((name, memory))

    threads = [threading.Thread(target=work, args=(n, m)) for n in names for m in (None, "32MiB")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_two_threads_at_one_network():
    """The second waits until the first is done."""
    net = rfexec.open("squeezenet1_1", (160, 150))
    images = [random_image(160, 150, seed=s) for s in range(2)]
    want = [net.run(i)["output"].tobytes() for i in images]
    got, started, go_on = {}, threading.Event(), threading.Event()

    def hold(*_):
        started.set()
        go_on.wait(20)

    def work(k, progress):
        got[k] = net.run(images[k], progress=progress)["output"].tobytes()

    threads = [threading.Thread(target=work, args=(k, p)) for k, p in enumerate((hold, None))]
    threads[0].start()
    assert started.wait(20)
    threads[1].start()
    threads[1].join(0.3)
    assert threads[1].is_alive() and got == {}
    go_on.set()
    for t in threads:
        t.join()
    assert got == dict(enumerate(want))


def test_the_lock_is_released():
    """Another thread counts on while a run computes."""
    net = rfexec.open("resnet50", (512, 512))
    image = random_image(512, 512)
    stop, counted = threading.Event(), [0]

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    net.run(image, threads=1)
    at_the_end = counted[0]
    stop.set()
    thread.join()
    assert at_the_end > 10000


FORKED = """
import os, sys, threading
import numpy as np, rfexec
net = rfexec.open("squeezenet1_1", (128, 128))
image = np.ones((1, 3, 128, 128), np.float32)
if {used}:
    net.run(image, threads=2)
pids = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        first = net.run(image, threads=2)["output"].tobytes()
        again = net.run(image, memory="32MiB")
        other = rfexec.open("squeezenet1_1", (128, 128)).run(image, threads=2)["output"].tobytes()
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(net.run(image, threads=2)["output"].tobytes() != first)
        bad = os.waitpid(grandchild, 0)[1]
        os._exit(bad != 0 or again["output"].tobytes() != first or other != first)
    pids.append(pid)
print([os.waitpid(pid, 0)[1] for pid in pids], net.run(image)["output"].shape)
"""


@pytest.mark.parametrize("used", [False, True])
def test_forks(python, used):
    done = python(FORKED.format(used=used), timeout=120)
    assert done.stdout == "[0, 0] (1, 1000)\n", done.stderr


def test_a_fork_while_another_thread_runs(python):
    done = python(
        """
import os, threading, time
import numpy as np, rfexec
net = rfexec.open("resnet50", (1024, 1024))
image = np.ones((1, 3, 1024, 1024), np.float32)
started = threading.Event()
thread = threading.Thread(target=lambda: net.run(image, progress=lambda *_: started.set()))
thread.start()
started.wait()
pid = os.fork()
if pid == 0:
    try:
        net.run(image)
    except rfexec.UsageError as e:
        os._exit("forked" not in str(e))
    os._exit(2)
thread.join()
print(os.waitpid(pid, 0)[1])
""",
        timeout=120,
    )
    assert done.stdout == "0\n", done.stderr


def test_left_loops_do_not_keep_the_interpreter(python):
    done = python(
        """
import numpy as np, rfexec
bands = rfexec.open("fsrcnn", (300, 400)).bands(np.zeros((3, 300, 400), np.float32), "16MiB")
next(bands)
""",
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_circles_are_collected(python):
    """Networks and runners in circles of garbage, in any order, also at the interpreter's end."""
    done = python(
        """
import gc, numpy as np, rfexec
for _ in range(3):
    net = rfexec.open("fsrcnn:2", (30, 40))
    net.runner, net.me = net.prepare(), net
    net.runner.run(np.zeros((3, 30, 40), np.float32))
    del net
    gc.collect()
net = rfexec.open("fsrcnn:2", (30, 40))
net.runner, net.me = net.prepare(), net
print("all")
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "all\n", "")
