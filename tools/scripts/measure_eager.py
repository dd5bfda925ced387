#!/usr/bin/env python3
"""Measures what an eager PyTorch run keeps alive, to hold against `rfexec curve --baseline eager`.

Counts the bytes of all tensor storages from their making to their release while the network runs
(weights apart), for the whole image and for the tail alone after a cut. Needs torch and
torchvision; nothing is downloaded, weights are random.

    python tools/scripts/measure_eager.py [--size 1024]
"""
import argparse
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode

try:
    import torchvision.models as models
except RuntimeError:  # torchvision's own operators do not load: declare the two it registers for
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    library.define("qnms(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    import torchvision.models as models

MIB = 2.0**20


class LiveBytes(TorchDispatchMode):
    """Bytes of live storages; peak and the operator that reached it."""

    def __init__(self, image):
        super().__init__()
        self.live = {image.untyped_storage()._cdata: image.nbytes}
        self.bytes = self.peak = image.nbytes
        self.where = "input"

    def release(self, key):
        self.bytes -= self.live.pop(key, 0)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key not in self.live:
                self.live[key] = storage.nbytes()
                self.bytes += storage.nbytes()
                weakref.finalize(storage, self.release, key)
        if self.bytes > self.peak:
            self.peak, self.where = self.bytes, str(func)
        return out


def measure(net, image):
    with torch.no_grad(), LiveBytes(image) as live:
        net(image)
    return live.peak / MIB, live.where


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=1024)
    size = parser.parse_args().size
    for name in ("mobilenet_v2", "resnet18", "resnet50", "vgg16"):
        net = getattr(models, name)(weights=None).eval()
        weights = sum(p.numel() for p in net.parameters()) * 4 / MIB
        peak, where = measure(net, torch.zeros(1, 3, size, size))
        print(f"{name}: weights {weights:.1f} MiB, whole image {peak:.1f} MiB of activations "
              f"at {where}, together {peak + weights:.1f} MiB")
        if name != "resnet50":
            continue
        tail = torch.nn.Sequential(*list(net.layer3)[1:], *net.layer4, net.avgpool)
        peak, where = measure(tail, torch.zeros(1, 1024, size // 16, size // 16))
        print(f"{name}: tail after layer3.0 {peak:.1f} MiB at {where}, "
              f"together {peak + weights:.1f} MiB")


if __name__ == "__main__":
    main()
