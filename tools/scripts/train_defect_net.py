#!/usr/bin/env python3
"""Trains the small defect detector that ships as data/defect_net.onnx.

A MobileNetV2-style fully convolutional network: inverted residual blocks, output stride 8, three
sigmoid maps (scratch, pit, stain). It learns on pictures from rfx-make-inspection-image, the same
program that makes the demo's picture; training, validation and demo seeds are disjoint.

    python3 tools/scripts/train_defect_net.py --generator build/tools/demo/rfx-make-inspection-image \\
        --out data/defect_net.onnx

Needs torch (CPU), numpy, pillow, onnx. One thread, fixed seeds: the same versions of these give
the same weights. About 20 minutes.
"""
import random

import numpy as np
import torch
from torch import nn

from training import OnnxWriter, begin, make_picture, read_options, train

KINDS = ("scratch", "pit", "stain")
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
STRIDE = 8
# Pixels of a defect in a cell of 8 x 8: from this many on the cell is positive; fewer but not
# none: the cell does not count in the loss.
POSITIVE_PX = (8, 10, 32)
TRAIN_SEED = 1_000_000  # seeds of training pictures start here
VALID_SEED = 9_000_000


class InvertedResidual(nn.Module):
    def __init__(self, ic, oc, stride, expand, dilation=1):
        super().__init__()
        mid = ic * expand
        self.skip = stride == 1 and ic == oc
        self.expand = nn.Conv2d(ic, mid, 1, bias=False)
        self.expand_bn = nn.BatchNorm2d(mid)
        self.depthwise = nn.Conv2d(mid, mid, 3, stride, dilation, dilation, groups=mid, bias=False)
        self.depthwise_bn = nn.BatchNorm2d(mid)
        self.project = nn.Conv2d(mid, oc, 1, bias=False)
        self.project_bn = nn.BatchNorm2d(oc)
        self.act = nn.ReLU6()

    def forward(self, x):
        y = self.act(self.expand_bn(self.expand(x)))
        y = self.act(self.depthwise_bn(self.depthwise(y)))
        y = self.project_bn(self.project(y))
        return x + y if self.skip else y


class DefectNet(nn.Module):
    # ic, oc, stride, expansion, dilation
    BLOCKS = ((16, 24, 2, 2, 1), (24, 24, 1, 4, 1), (24, 40, 2, 4, 1), (40, 40, 1, 4, 1),
              (40, 40, 1, 4, 1), (40, 64, 1, 4, 2), (64, 64, 1, 4, 2), (64, 64, 1, 4, 1))

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1, bias=False)
        self.stem_bn = nn.BatchNorm2d(16)
        self.act = nn.ReLU6()
        self.blocks = nn.ModuleList(InvertedResidual(*b) for b in self.BLOCKS)
        self.head = nn.Conv2d(64, 96, 1, bias=False)
        self.head_bn = nn.BatchNorm2d(96)
        self.classify = nn.Conv2d(96, len(KINDS), 1)
        nn.init.constant_(self.classify.bias, -4.0)  # defects are rare

    def forward(self, x):
        x = self.act(self.stem_bn(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return self.classify(self.act(self.head_bn(self.head(x))))


def make_inspection(args, folder, seed, side, density):
    return make_picture(args.generator, folder, f"{side}x{side}", seed, "--density", str(density))


def to_input(rgb):
    """uint8 [..., h, w, 3] -> float32 [..., 3, h, w], rfexec's default preprocessing."""
    x = (rgb.astype(np.float32) / 255.0 - MEAN) / STD
    return np.moveaxis(x, -1, -3).copy()


def to_target(mask):
    """uint8 [h, w] -> target and weight, float32 [3, h/8, w/8]."""
    h, w = mask.shape[0] // STRIDE, mask.shape[1] // STRIDE
    cells = mask[:h * STRIDE, :w * STRIDE].reshape(h, STRIDE, w, STRIDE)
    target = np.zeros((len(KINDS), h, w), np.float32)
    weight = np.ones_like(target)
    for k, least in enumerate(POSITIVE_PX):
        count = (cells == k + 1).sum(axis=(1, 3))
        target[k] = count >= least
        weight[k] = (count == 0) | (count >= least)
    return target, weight


def crop_place(rng, mask, size):
    """Half of the crops anywhere, half around a pixel of a defect."""
    h, w = mask.shape
    y, x = rng.randrange(h - size + 1), rng.randrange(w - size + 1)
    if rng.random() < 0.5:
        marked = np.flatnonzero(mask)
        if marked.size:
            cy, cx = divmod(int(marked[rng.randrange(marked.size)]), w)
            y = min(max(cy - rng.randrange(size), 0), h - size)
            x = min(max(cx - rng.randrange(size), 0), w - size)
    return y, x


def batches(args, folder):
    """Endless batches of crops; every picture is used for two batches and thrown away."""
    rng = random.Random(args.seed)
    seed = TRAIN_SEED
    pictures = []
    while True:
        for _ in range(2):
            density = rng.choice((6.0, 25.0, 40.0))
            pictures.append(make_inspection(args, folder, seed, 768, density))
            seed += 1
        pictures = pictures[-8:]
        for _ in range(2):
            rgb, target, weight = [], [], []
            for _ in range(args.batch):
                image, mask = rng.choice(pictures)
                y, x = crop_place(rng, mask, args.crop)
                part = image[y:y + args.crop, x:x + args.crop]
                truth = mask[y:y + args.crop, x:x + args.crop]
                turns, mirror = rng.randrange(4), rng.random() < 0.5
                part, truth = np.rot90(part, turns), np.rot90(truth, turns)
                if mirror:
                    part, truth = part[:, ::-1], truth[:, ::-1]
                rgb.append(part)
                t, w = to_target(np.ascontiguousarray(truth))
                target.append(t)
                weight.append(w)
            yield (torch.from_numpy(to_input(np.stack(rgb))), torch.from_numpy(np.stack(target)),
                   torch.from_numpy(np.stack(weight)))


def validate(net, args, folder):
    """Prints recall and false alarms of cells on pictures that training never sees."""
    net.eval()
    hits, wanted, alarms = np.zeros(3), np.zeros(3), np.zeros(3)
    with torch.no_grad():
        for i in range(6):
            image, mask = make_inspection(args, folder, VALID_SEED + i, 1024, 12.0)
            target, weight = to_target(mask)
            found = torch.sigmoid(net(torch.from_numpy(to_input(image[None]))))[0].numpy() > 0.5
            for k in range(3):
                hits[k] += (found[k] & (target[k] > 0)).sum()
                wanted[k] += (target[k] > 0).sum()
                alarms[k] += (found[k] & (target[k] == 0) & (weight[k] > 0)).sum()
    net.train()
    return ", ".join(f"{kind} {h / n:.3f} of cells, {int(a)} false"
                     for kind, h, n, a in zip(KINDS, hits, np.maximum(wanted, 1), alarms))


def fold(conv, norm):
    """Weights and bias of a convolution with its batch norm folded in, in float64."""
    scale = norm.weight.double() / torch.sqrt(norm.running_var.double() + norm.eps)
    weight = conv.weight.double() * scale[:, None, None, None]
    bias = norm.bias.double() - norm.running_mean.double() * scale
    return weight.detach().float().numpy(), bias.detach().float().numpy()


class DefectWriter(OnnxWriter):
    """A chain of layers."""

    def __init__(self):
        super().__init__()
        self.constant("relu6_min", np.float32(0))
        self.constant("relu6_max", np.float32(6))

    def conv(self, name, x, conv, norm, activation):
        weight, bias = fold(conv, norm) if norm else (conv.weight.detach().numpy(),
                                                      conv.bias.detach().numpy())
        self.constant(name + ".weight", weight)
        self.constant(name + ".bias", bias)
        self.node("Conv", [x, name + ".weight", name + ".bias"], name,
                  kernel_shape=list(conv.kernel_size), strides=list(conv.stride),
                  pads=list(conv.padding) * 2, dilations=list(conv.dilation), group=conv.groups)
        if not activation:
            return name
        return self.node("Clip", [name, "relu6_min", "relu6_max"], name + ".relu6")


def export(net, path):
    """Writes the network as ONNX, with batch norm folded."""
    w = DefectWriter()
    x = w.conv("stem", "image", net.stem, net.stem_bn, True)
    for i, b in enumerate(net.blocks):
        name = f"blocks.{i}"
        y = w.conv(name + ".expand", x, b.expand, b.expand_bn, True)
        y = w.conv(name + ".depthwise", y, b.depthwise, b.depthwise_bn, True)
        y = w.conv(name + ".project", y, b.project, b.project_bn, False)
        x = w.node("Add", [x, y], name) if b.skip else y
    x = w.conv("head", x, net.head, net.head_bn, True)
    x = w.conv("classify", x, net.classify, None, False)
    w.node("Sigmoid", [x], "defects")
    w.save(path, "defect_net", 3, "defects", KINDS, STRIDE, "train_defect_net.py")


def loss_of(output, target, weight):
    loss = nn.functional.binary_cross_entropy_with_logits(output, target, weight, reduction="sum")
    return loss / weight.sum()


def main():
    args = read_options(__doc__, "rfx-make-inspection-image", steps=1800, batch=16, crop=160,
                        rate=4e-3)
    net = begin(args, DefectNet)

    def after(step, told, folder):
        if step % 100 == 0 or step == args.steps:
            print(told, flush=True)
        if step % 500 == 0 or step == args.steps:
            print("  valid: " + validate(net, args, folder), flush=True)
            export(net.eval(), args.out)
            net.train()

    train(net, args, batches, loss_of, after)


if __name__ == "__main__":
    main()
