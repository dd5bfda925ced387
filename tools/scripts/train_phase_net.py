#!/usr/bin/env python3
"""Trains the small U-Net with instance norms that ships as data/phase_net.onnx.

It tells the dark, the grey and the bright phase of a made micrograph apart (rfx-make-micrograph),
whose brightness and contrast are other ones in every picture: what is dark, the statistics of the
whole picture say, which is what its norms take. Labels are those of every second row and column.

    python3 tools/scripts/train_phase_net.py --generator build/tools/demo/rfx-make-micrograph \\
        --out data/phase_net.onnx

Needs torch (CPU), numpy, pillow, onnx. One thread, fixed seeds: the same versions of these give
the same weights. A few minutes.
"""
import random

import numpy as np
import torch
from torch import nn

from training import OnnxWriter, begin, make_picture, read_options, train

PHASES = ("dark", "grey", "bright")
MEAN, STD = np.float32(0.485), np.float32(0.229)  # rfexec's default for pictures
STRIDE = 2
SLOPE = 0.01
TRAIN_SEED = 1_000_000  # seeds of training pictures start here
VALID_SEED = 9_000_000


class Layer(nn.Module):
    """A convolution, an instance norm and a leaky rectifier: nnU-Net's layer."""

    def __init__(self, ic, oc, k, stride):
        super().__init__()
        self.conv = nn.Conv2d(ic, oc, k, stride, k // 2, bias=False)
        self.norm = nn.InstanceNorm2d(oc, affine=True)
        self.act = nn.LeakyReLU(SLOPE)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class PhaseNet(nn.Module):
    """A U-Net of three levels behind a first layer of stride 2."""
    DOWN = (("stem", 1, 8, 5, 2), ("down1", 8, 16, 3, 2), ("down2", 16, 32, 3, 2))
    UP = (("up1", 32, 16), ("up0", 16, 8))

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(Layer(*d[1:]) for d in self.DOWN)
        self.middle = Layer(32, 32, 3, 1)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for _, i, o in self.UP)
        self.up = nn.ModuleList(Layer(2 * o, o, 3, 1) for _, _, o in self.UP)
        self.classify = nn.Conv2d(8, len(PHASES), 1)

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
        x = self.middle(x)
        for i, (grow, layer) in enumerate(zip(self.grow, self.up)):
            skip = kept[-2 - i]
            x = grow(x)[:, :, :skip.shape[2], :skip.shape[3]]
            x = layer(torch.cat((x, skip), 1))
        return self.classify(x)


def make_micrograph(args, folder, seed, side, domain):
    return make_picture(args.generator, folder, f"{side}x{side}", seed, "--domains", str(domain))


def to_input(grey):
    """uint8 [n, h, w] -> float32 [n, 1, h, w], rfexec's default preprocessing."""
    return torch.from_numpy(((grey.astype(np.float32) / 255.0 - MEAN) / STD)[:, None])


def to_target(mask):
    return torch.from_numpy(mask[:, ::STRIDE, ::STRIDE].astype(np.int64))


def batches(args, folder):
    """Endless batches of whole pictures, as the norms must see them: a pool that is renewed."""
    rng = random.Random(args.seed)
    pool, seed = [], TRAIN_SEED
    while True:
        for _ in range(args.batch if pool else 8 * args.batch):
            pool.append(make_micrograph(args, folder, seed, args.side,
                                        rng.randrange(32, args.side // 3)))
            seed += 1
        pool = pool[-16 * args.batch:]
        for _ in range(2):
            chosen = [rng.choice(pool) for _ in range(args.batch)]
            turned = [[np.rot90(p, turns) for p in pair]
                      for pair, turns in ((c, rng.randrange(4)) for c in chosen)]
            yield (to_input(np.stack([t[0] for t in turned])),
                   to_target(np.stack([t[1] for t in turned])))


def validate(net, args, folder):
    """The share of right labels on larger pictures that training never sees."""
    net.eval()
    right = []
    with torch.no_grad():
        for i in range(8):
            image, mask = make_micrograph(args, folder, VALID_SEED + i, 768, 40 + 25 * i)
            found = net(to_input(image[None])).argmax(1)
            right.append((found == to_target(mask[None])).float().mean().item())
    net.train()
    return f"labels right: mean {np.mean(right):.5f}, least {min(right):.5f}"


class PhaseWriter(OnnxWriter):
    """Layers of the network."""

    def weights(self, name, module):
        names = []
        for part in ("weight", "bias"):
            values = getattr(module, part)
            if values is not None:
                names.append(self.constant(f"{name}.{part}", values.detach().numpy()))
        return names

    def conv(self, name, x, conv):
        return self.node("Conv", [x, *self.weights(name, conv)], name,
                         kernel_shape=list(conv.kernel_size), strides=list(conv.stride),
                         pads=list(conv.padding) * 2)

    def layer(self, name, x, layer):
        x = self.conv(name + ".conv", x, layer.conv)
        x = self.node("InstanceNormalization", [x, *self.weights(name + ".norm", layer.norm)],
                      name + ".norm", epsilon=layer.norm.eps)
        return self.node("LeakyRelu", [x], name, alpha=SLOPE)

    def grow(self, name, x, skip, conv):
        """Doubled, and cut to the size of `skip`, which may be odd."""
        x = self.node("ConvTranspose", [x, *self.weights(name + ".grow", conv)], name + ".grow",
                      kernel_shape=[2, 2], strides=[2, 2])
        shape = self.node("Shape", [skip], name + ".shape")
        size = self.node("Slice", [shape, "two", "four"], name + ".size")
        x = self.node("Slice", [x, "zeros", size, "space"], name + ".cut")
        return self.node("Concat", [x, skip], name + ".concat", axis=1)


def export(net, path):
    """Writes the network as ONNX."""
    w = PhaseWriter()
    for name, values in (("zeros", [0, 0]), ("space", [2, 3]), ("two", [2]), ("four", [4])):
        w.constant(name, np.array(values, np.int64))
    x, kept = "image", []
    for layer, (name, *_) in zip(net.down, net.DOWN):
        x = w.layer(name, x, layer)
        kept.append(x)
    x = w.layer("middle", x, net.middle)
    for i, (name, *_) in enumerate(net.UP):
        x = w.layer(name, w.grow(name, x, kept[-2 - i], net.grow[i]), net.up[i])
    x = w.conv("classify", x, net.classify)
    w.node("Softmax", [x], "phases", axis=1)
    w.save(path, "phase_net", 1, "phases", PHASES, STRIDE, "train_phase_net.py")


def main():
    args = read_options(__doc__, "rfx-make-micrograph", steps=500, batch=8, side=256, rate=6e-3)
    net = begin(args, PhaseNet)

    def after(step, told, folder):
        if step % 50 == 0 or step == args.steps:
            print(told + ", " + validate(net, args, folder), flush=True)

    train(net, args, batches, nn.functional.cross_entropy, after)
    export(net.eval(), args.out)


if __name__ == "__main__":
    main()
