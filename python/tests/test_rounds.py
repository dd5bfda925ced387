"""Rounds of states: shards of outputs behind global operations have the bits of one run."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import rfexec
from conftest import random_image

SIZE = (45, 33)


@pytest.fixture(scope="module")
def image():
    return random_image(*SIZE)


def merged_states(net, image, count, **options):
    """All rounds; the states of each are pickled, and merged in two groups, the last shards first."""
    states = None
    for number in range(1, net.rounds() + 1):
        shards = [
            net.round(number, i, count).run(image, states=states, **options)
            for i in range(count, 0, -1)
        ]
        assert all(isinstance(shard, bytes) for shard in shards)
        shards = pickle.loads(pickle.dumps(shards))
        groups = [net.merge_states(group) for group in (shards[::2], shards[1::2]) if group]
        states = net.merge_states(groups)
    return states


@pytest.mark.parametrize("count, options", [(1, {}), (3, {"memory": "64MiB", "threads": 2})])
def test_map(image, count, options):
    net = rfexec.open("unet_instance", SIZE)
    want = net.run(image)["output"]
    assert net.rounds() == 18
    states = merged_states(net, image, count, **options)
    parts = [net.part(i, 4, states=states) for i in (1, 2, 3, 4)]
    got = np.concatenate([part.run(image, **options)["output"] for part in parts], axis=2)
    assert got.tobytes() == want.tobytes()
    rect = net.part_rect(slice(5, 20), slice(-9, None), states=bytearray(states))
    assert rect.run(image)["output"].tobytes() == want[:, :, 5:20, -9:].tobytes()
    # less is computed than by a part that computes all that comes before
    alone = net.part(1, 4)
    assert parts[0].plan().macs < 0.7 * alone.plan().macs
    assert alone.needs[0] == slice(0, SIZE[0])


@pytest.mark.parametrize("count", [2, 5])
def test_vector(image, count):
    net = rfexec.open("mobilenet_v2:0.25", SIZE)
    want = net.run(image)
    (name,) = want
    assert net.rounds() == net.rounds(name) == 1
    states = merged_states(net, image, count)
    rest = net.part(1, 1, states=states)
    assert rest.needs == (slice(0, 0), slice(0, 0))
    for got in (rest.run(), rest.run(image)):
        assert got[name].tobytes() == want[name].tobytes() and got[name].shape == want[name].shape


def test_other_process(image, tmp_path):
    """States of a picture that another process reads are those of the values."""
    np.save(tmp_path / "image.npy", image)
    code = (
        "import rfexec, sys; net = rfexec.open('mobilenet_v2:0.25', (45, 33)); "
        "sys.stdout.buffer.write(net.round(1, 2, 2).run('image.npy'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    shard = rfexec.open("mobilenet_v2:0.25", SIZE).round(1, 2, 2)
    assert done.stdout == shard.run(image)
    assert shard.run(image[0].transpose(1, 2, 0), layout="NHWC") == done.stdout


class Watched:
    """An array-like that knows which rows were read."""

    def __init__(self, array):
        self.array, self.rows = array, [array.shape[2], 0]
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, index):
        rows = index[2]
        self.rows = [min(self.rows[0], rows.start), max(self.rows[1], rows.stop)]
        return self.array[index]


def test_needs(image):
    net = rfexec.open("mobilenet_v2:0.25", SIZE)
    watched, steps, told = Watched(image), [], []
    shard = net.round(1, 1, 2)
    assert "shard 1 of 2" in repr(shard) and shard.needs[1] == slice(0, SIZE[1])
    shard.run(watched, observer=steps.append, progress=lambda done, total: told.append((done, total)))
    assert watched.rows == [shard.needs[0].start, shard.needs[0].stop]
    assert steps and all(step.output is None for step in steps)
    assert told[-1][0] == told[-1][1]
    net.close()
    with pytest.raises(rfexec.UsageError, match="closed"):
        shard.run(image)


def test_refusals(image):
    net = rfexec.open("unet_instance", SIZE)
    one, two = (net.round(1, i, 2).run(image) for i in (1, 2))
    states = net.merge_states([one, two])
    second = net.round(2, 1, 2)
    with pytest.raises(rfexec.UsageError, match="states of round 1"):
        second.run(image)
    with pytest.raises(rfexec.RefusedError, match="some of 2 shards"):
        second.run(image, states=one)
    with pytest.raises(rfexec.RefusedError, match="row 0 of the image"):
        second.run(image + 1, states=states)
    with pytest.raises(rfexec.RefusedError, match="round 18 are needed"):
        net.part(1, 2, states=states)
    with pytest.raises(rfexec.RefusedError, match="there twice"):
        net.merge_states([one, one])
    with pytest.raises(rfexec.RefusedError, match="round 2"):
        net.merge_states([one, second.run(image, states=states)])
    with pytest.raises(rfexec.RefusedError, match="row .* differs"):
        net.merge_states([one, net.round(1, 2, 2).run(2 * image)])
    with pytest.raises(rfexec.RefusedError, match="another network"):
        rfexec.open("unet_instance", SIZE, seed=1).merge_states([one, two])
    with pytest.raises(rfexec.RefusedError, match="no states"):
        net.merge_states([one[:50], two])
    with pytest.raises(rfexec.UsageError, match="0 states"):
        net.merge_states([])
    with pytest.raises(rfexec.UsageError, match="of type str"):
        net.merge_states(["one"])
    with pytest.raises(rfexec.UsageError, match="18 rounds"):
        net.round(19, 1, 2)
    with pytest.raises(rfexec.UsageError, match="shard 3 of 2"):
        net.round(1, 3, 2)
    with pytest.raises(rfexec.BudgetError) as failure:
        net.round(1, 1, 2).run(image, memory="1MiB", threads=1)
    assert net.round(1, 1, 2).run(image, memory=failure.value.needed_bytes, threads=1) == one
    with pytest.raises(rfexec.RefusedError, match="has no parts"):
        rfexec.open("vae_decoder", (8, 8)).rounds()
    assert rfexec.open("fsrcnn", SIZE).rounds() == 0
