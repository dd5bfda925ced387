"""A network with norms over whole maps, on a cluster: its work shared in rounds of states.

    python dask_rounds.py NET.onnx PICTURE SHARDS MEMORY OUT.npy [ADDRESS of a dask scheduler]

In each round every shard adds its rows of the picture to the states of the next norms, the states are
added up in a tree, and the next round takes the sum. Then each task makes some rows of the map.
rfexec.dask.map_image does the same by itself; here the steps are seen, for other schedulers.

With unet_instance synthetic:96x64 3 64MiB map.npy it prints
    1x2x96x64 after 18 rounds of 3 shards, the largest value 5.3062
"""

import sys

import dask
import dask.array as da
import numpy as np
import rfexec
from dask.distributed import Client


@dask.delayed(pure=False)
def run_round(model, picture, memory, number, index, shards, states):
    with rfexec.open(model, image=picture) as net:
        return net.round(number, index, shards).run(picture, memory, threads=1, states=states)


@dask.delayed(pure=False)
def merge(model, picture, states):
    with rfexec.open(model, image=picture) as net:
        return net.merge_states(states)


@dask.delayed(pure=False)
def make_rows(model, picture, memory, rows, states):
    with rfexec.open(model, image=picture) as net:
        part = net.part_rect(rows, states=states)
        return part.run(picture, memory, threads=1)[part.outputs[0].name]


def add_up(model, picture, states):
    """In pairs, the sums in pairs, and so on; any tree gives the same bits."""
    while True:
        states = [merge(model, picture, states[i : i + 2]) for i in range(0, len(states), 2)]
        if len(states) == 1:
            return states[0]


def main(model, picture, shards, memory, path, address=None):
    shards = int(shards)
    with rfexec.open(model, image=picture) as net:
        rounds, shape = net.rounds(), net.outputs[0].shape
    with Client(address) if address else Client(n_workers=3, threads_per_worker=1):
        states = None
        for number in range(1, rounds + 1):
            parts = [run_round(model, picture, memory, number, i + 1, shards, states) for i in range(shards)]
            states = add_up(model, picture, parts)
        ends = [shape[2] * i // shards for i in range(shards + 1)]
        bands = [
            da.from_delayed(
                make_rows(model, picture, memory, slice(a, b), states), (*shape[:2], b - a, shape[3]), np.float32
            )
            for a, b in zip(ends, ends[1:])
        ]
        maps = da.concatenate(bands, axis=2).compute()
    np.save(path, maps)
    print(
        "x".join(map(str, shape)),
        "after %d rounds of %d shards, the largest value %.4f" % (rounds, shards, maps.max()),
    )


if __name__ == "__main__":  # processes of a cluster import this file
    main(*sys.argv[1:])
