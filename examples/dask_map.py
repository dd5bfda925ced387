"""A picture through a network into a zarr array by many processes: each makes chunks of the map, for
which it reads what the network needs of the picture, inside a budget of its own.

    python dask_map.py NET.onnx PICTURE OUT.zarr MEMORY [ADDRESS of a dask scheduler]

With data/defect_net.onnx synthetic:600x500 map.zarr 20MiB it prints
    1x3x75x63 in 6 chunks of map.zarr, the largest value 1.0000
"""

import os
import sys

import rfexec.dask
import zarr
from dask.distributed import Client


def main(model, picture, path, memory, address=None):
    with Client(address) if address else Client(n_workers=3, threads_per_worker=1):
        maps = rfexec.dask.map_image(model, picture, memory, chunks=(32, 32))
        path = os.path.abspath(path)  # the processes may run in other folders
        maps.to_zarr(path, overwrite=True)
        print(
            "x".join(map(str, maps.shape)),
            "in %d chunks of %s," % (maps.npartitions, os.path.basename(path)),
            "the largest value %.4f" % zarr.open(path, mode="r")[:].max(),
        )


if __name__ == "__main__":  # processes of a cluster import this file
    main(*sys.argv[1:])
