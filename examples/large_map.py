"""A picture to a map in a .npy file, neither of them ever whole in memory.

    python large_map.py NET.onnx PICTURE OUT.npy MEMORY
"""

import sys

import numpy as np
import rfexec

model, picture, path, memory = sys.argv[1:]
net = rfexec.open(model, size=rfexec.picture_size(picture)[:2])
out = np.lib.format.open_memmap(path, "w+", np.float32, net.outputs[0].shape)
for rows, band in net.bands(picture, memory=memory):
    out[:, :, rows] = band
    print(f"rows {rows.start} to {rows.stop} of {out.shape[2]}", file=sys.stderr)
