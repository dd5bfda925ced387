"""A dask array through a network into a zarr array: of both some chunks at a time are in memory.

    python dask_to_zarr.py NET.onnx ROWS COLUMNS OUT.zarr MEMORY

With data/defect_net.onnx 1024 768 map.zarr 24MiB it prints
    1x3x128x96 in map.zarr, the largest value 0.9737
"""

import sys

import dask.array as da
import rfexec
import zarr

model, rows, columns, path, memory = sys.argv[1:]
size = int(rows), int(columns)
# What is computed when it is asked for: any dask array will do, such as one of a file's blocks.
image = da.random.default_rng(0).standard_normal((3, *size), chunks=(3, 128, size[1]), dtype="float32")
net = rfexec.open(model, size=size)
shape = net.outputs[0].shape
out = zarr.open(path, mode="w", shape=shape, chunks=(1, shape[1], 64, 64), dtype="float32")
for done, band in net.bands(image, memory=memory):
    out[:, :, done] = band
print("x".join(map(str, shape)), "in %s, the largest value %.4f" % (path, out[:].max()))
