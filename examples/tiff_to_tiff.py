"""A large TIFF through a network into a TIFF: of both some rows at a time are in memory.

    python tiff_to_tiff.py NET.onnx IN.tif OUT.tif MEMORY

tifffile decodes the blocks that are asked for, so this reads whatever it does: slides, OME-TIFFs, any
packing, samples of 16 bits. (Common TIFFs rfexec reads by itself: net.bands("in.tif").)
With data/defect_net.onnx and 2048x1536 random pixels it prints
    2048x1536 pixels in blocks of 256x256 to 256x192x3 values in defects.tif, the largest 0.9977
"""

import sys

import numpy as np
import rfexec
import tifffile
import zarr


class Scaled:
    """Samples as the network was trained on them: float32, less the mean, by the deviation."""

    mean = np.array((0.485, 0.456, 0.406), np.float32)
    std = np.array((0.229, 0.224, 0.225), np.float32)

    def __init__(self, samples):
        self.samples, self.shape = samples, samples.shape  # rows, columns, channels
        self.chunks = samples.chunks  # so a row of blocks is decoded once
        self.most = np.float32(np.iinfo(samples.dtype).max)

    def __getitem__(self, index):
        return (self.samples[index].astype(np.float32) / self.most - self.mean) / self.std


model, path, out_path, memory = sys.argv[1:]
with tifffile.TiffFile(path) as file:
    image = Scaled(zarr.open(file.series[0].aszarr(level=0), mode="r"))
    net = rfexec.open(model, size=image.shape[:2])
    _, channels, *size = net.outputs[0].shape
    out = tifffile.memmap(out_path, shape=(*size, channels), dtype="float32", photometric="minisblack",
                          planarconfig="contig")
    most = -np.inf
    for rows, band in net.bands(image, memory=memory, layout="NHWC"):
        out[rows] = band[0].transpose(1, 2, 0)
        most = max(most, band.max())
out.flush()
text = ["x".join(map(str, shape)) for shape in (image.shape[:2], image.chunks[:2], out.shape)]
print("%s pixels in blocks of %s to %s values in %s, the largest %.4f" % (*text, out_path, most))
