"""Parts of one output as Ray tasks: each reads what it needs of the picture, inside a budget of its own.

    python ray_parts.py NET.onnx PICTURE PARTS MEMORY OUT.npy

With data/defect_net.onnx synthetic:600x500 5 20MiB map.npy it prints
    1x3x75x63 of 5 parts in map.npy, the largest value 1.0000
"""

import os
import sys

import numpy as np
import ray
import rfexec


@ray.remote
def make_part(model, picture, i, n, memory):
    net = rfexec.open(model, size=rfexec.picture_size(picture)[:2])
    part = net.part(i, n)
    return part.run(picture, memory, threads=1)[part.outputs[0].name]


model, picture, parts, memory, path = sys.argv[1:]
# Tasks may run in other folders; names that are no files are built in, or "synthetic:...".
model, picture = (os.path.abspath(name) if os.path.exists(name) else name for name in (model, picture))
n = int(parts)
bands = ray.get([make_part.remote(model, picture, i, n, memory) for i in range(1, n + 1)])
maps = np.concatenate(bands, axis=2)
np.save(path, maps)
print("x".join(map(str, maps.shape)), "of %d parts in %s, the largest value %.4f" % (n, path, maps.max()))
