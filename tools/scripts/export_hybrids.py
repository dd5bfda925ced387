"""Exports networks that mix convolutions with attention, with random weights, as ONNX files.

    python tools/scripts/export_hybrids.py OUT_DIR [NAME ...] [--exporter ts|dynamo|both] [--size HxW]

Torchvision's swin_t and maxvit_t, timm's nf_resnet50, levit_128s, botnet26t_256, volo_d1_224 and
lambda_resnet26t, and SCUNet, whose architecture is in this file. For each network one file per
exporter: <name>_<exporter>.onnx, for images of the network's own size unless --size gives another.
Needs torch, torchvision, timm, onnx and onnxscript.

tests/acceptance/exports.py compares rfexec with ONNX Runtime on these files."""

import argparse
import os
import sys
import warnings

import torch
from torch import nn

from export_torchvision import import_models

# name -> (where it comes from, rows and columns of its images)
NETWORKS = {
    "swin_t": ("torchvision", (224, 224)),
    "maxvit_t": ("torchvision", (224, 224)),
    "nf_resnet50": ("timm", (256, 256)),
    "levit_128s": ("timm", (224, 224)),
    "botnet26t_256": ("timm", (256, 256)),
    "volo_d1_224": ("timm", (224, 224)),
    "lambda_resnet26t": ("timm", (256, 256)),
    "scunet": ("here", (128, 192)),
}


class WindowAttention(nn.Module):
    """Attention in windows of `side` x `side` pixels, with a bias for each head and each distance;
    `shifted`: of a map that was rolled by half a window, where pixels from both ends of the map do
    not see each other."""

    def __init__(self, channels, head_channels, side, shifted):
        super().__init__()
        self.side, self.shift = side, side // 2 if shifted else 0
        self.heads, self.head_channels = channels // head_channels, head_channels
        self.qkv = nn.Linear(channels, 3 * channels)
        self.project = nn.Linear(channels, channels)
        self.table = nn.Parameter(torch.randn(self.heads, 2 * side - 1, 2 * side - 1) * 0.5)

    def bias(self):
        places = torch.arange(self.side)
        rows, columns = torch.meshgrid(places, places, indexing="ij")
        places = torch.stack([rows.reshape(-1), columns.reshape(-1)])
        apart = places[:, :, None] - places[:, None, :] + self.side - 1
        return self.table[:, apart[0], apart[1]]

    def hidden(self, down, across):
        """True where a query does not see a key: windows of the last row or column of windows."""
        side, cut = self.side, self.side - self.shift
        mask = torch.zeros(down, across, side, side, side, side, dtype=torch.bool)
        if self.shift > 0:
            mask[-1, :, :cut, :, cut:, :] = True
            mask[-1, :, cut:, :, :cut, :] = True
            mask[:, -1, :, :cut, :, cut:] = True
            mask[:, -1, :, cut:, :, :cut] = True
        return mask.reshape(1, 1, down * across, side * side, side * side)

    def forward(self, x):
        n, rows, columns, channels = x.shape
        side = self.side
        if self.shift > 0:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        down, across = rows // side, columns // side
        x = x.reshape(n, down, side, across, side, channels).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(n, down * across, side * side, channels)
        qkv = self.qkv(x).reshape(n, down * across, side * side, 3 * self.heads, self.head_channels)
        q, k, v = qkv.permute(3, 0, 1, 2, 4).chunk(3, dim=0)
        scores = torch.einsum("hbwpc,hbwqc->hbwpq", q, k) * self.head_channels**-0.5
        scores = scores + self.bias()[:, None, None]
        if self.shift > 0:
            scores = scores.masked_fill(self.hidden(down, across), float("-inf"))
        y = torch.einsum("hbwij,hbwjc->hbwic", scores.softmax(-1), v)
        y = self.project(y.permute(1, 2, 3, 0, 4).reshape(n, down * across, side * side, channels))
        y = y.reshape(n, down, across, side, side, channels).permute(0, 1, 3, 2, 4, 5)
        y = y.reshape(n, rows, columns, channels)
        return torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift > 0 else y


class SwinBlock(nn.Module):
    def __init__(self, channels, head_channels, side, shifted):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.attention = WindowAttention(channels, head_channels, side, shifted)
        self.mlp = nn.Sequential(nn.Linear(channels, 4 * channels), nn.GELU(),
                                 nn.Linear(4 * channels, channels))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class SwinConvBlock(nn.Module):
    """Half of the channels through a residual convolution, half through a Swin block, joined."""

    def __init__(self, channels, head_channels, side, shifted):
        super().__init__()
        half = channels // 2
        self.enter, self.leave = nn.Conv2d(channels, channels, 1), nn.Conv2d(channels, channels, 1)
        self.swin = SwinBlock(half, head_channels, side, shifted)
        self.conv = nn.Sequential(nn.Conv2d(half, half, 3, padding=1, bias=False), nn.ReLU(),
                                  nn.Conv2d(half, half, 3, padding=1, bias=False))

    def forward(self, x):
        a, b = self.enter(x).chunk(2, dim=1)
        a = a + self.conv(a)
        b = self.swin(b.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return x + self.leave(torch.cat([a, b], dim=1))


class ScuNet(nn.Module):
    """Swin-Conv-UNet (Zhang et al., 2022, arXiv 2203.13278): a U-Net of four scales, each of whose
    stages has `blocks` Swin-Conv blocks with windows of 8 x 8 pixels and heads of 32 channels."""

    def __init__(self, blocks=(4, 4, 4, 4, 4, 4, 4), channels=64, head_channels=32, side=8):
        super().__init__()

        def stage(count, width):
            return [SwinConvBlock(width, head_channels, side, i % 2 == 1) for i in range(count)]

        c = channels
        self.multiple = 8 * side
        self.head = nn.Conv2d(3, c, 3, padding=1, bias=False)
        self.tail = nn.Conv2d(c, 3, 3, padding=1, bias=False)
        self.down = nn.ModuleList(
            nn.Sequential(*stage(blocks[i], c << i), nn.Conv2d(c << i, c << (i + 1), 2, 2, bias=False))
            for i in range(3))
        self.body = nn.Sequential(*stage(blocks[3], c << 3))
        self.up = nn.ModuleList(
            nn.Sequential(nn.ConvTranspose2d(c << (i + 1), c << i, 2, 2, bias=False),
                          *stage(blocks[6 - i], c << i)) for i in (2, 1, 0))

    def forward(self, image):
        rows, columns = image.shape[-2:]
        below, beside = -rows % self.multiple, -columns % self.multiple
        x = nn.functional.pad(image, (0, beside, 0, below), mode="replicate")
        kept = [self.head(x)]
        for stage in self.down:
            kept.append(stage(kept[-1]))
        x = self.body(kept[-1])
        for stage in self.up:
            x = stage(x + kept.pop())
        return self.tail(x + kept.pop())[..., :rows, :columns]


def randomise(net):
    """Statistics and scales away from 0 and 1, so that a mistake in folding them shows."""
    generator = torch.Generator().manual_seed(7)
    norms = (nn.BatchNorm1d, nn.BatchNorm2d)
    for module in net.modules():
        if isinstance(module, norms):
            n = module.num_features
            module.running_mean.copy_(torch.randn(n, generator=generator) * 0.1)
            module.running_var.copy_(torch.rand(n, generator=generator) + 0.5)
            module.weight.copy_(torch.rand(n, generator=generator) * 0.5 + 0.75)
            module.bias.copy_(torch.randn(n, generator=generator) * 0.1)
        elif isinstance(module, nn.LayerNorm):
            module.bias.copy_(torch.randn(module.bias.shape, generator=generator) * 0.1)
    for name, values in net.named_parameters():
        if values.ndim <= 1 and not values.any():  # scales that begin with 0, as gains of residuals
            values.copy_(torch.rand(values.shape, generator=generator) * 0.3)


def create(name, size):
    origin, own = NETWORKS[name]
    torch.manual_seed(1)
    if origin == "torchvision":
        net = getattr(import_models()[0], name)(weights=None)
    elif origin == "timm":
        import timm

        net = timm.create_model(name, pretrained=False)
    else:
        net = ScuNet()
    net = net.eval()
    with torch.no_grad():
        randomise(net)
    return net, size or own


def export(net, size, path, exporter):
    image = torch.randn(1, 3, *size)
    options = {"input_names": ["image"], "output_names": ["result"]}
    if exporter == "ts":  # does not know VOLO's fold, Col2Im
        options.update(dynamo=False, opset_version=17)
    else:
        options.update(dynamo=True, external_data=False, verbose=False)
    with torch.no_grad():
        torch.onnx.export(net, (image,), path, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", default=list(NETWORKS), metavar="NAME")
    parser.add_argument("--exporter", choices=("ts", "dynamo", "both"), default="both")
    parser.add_argument("--size", help="rows x columns of the image, as 256x320")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in NETWORKS]
    if unknown:
        sys.exit(f"no network {unknown[0]}: there are {', '.join(NETWORKS)}")
    warnings.filterwarnings("ignore")
    os.makedirs(args.folder, exist_ok=True)
    size = tuple(int(part) for part in args.size.split("x")) if args.size else None
    for name in args.names:
        net, own = create(name, size)
        for exporter in ("ts", "dynamo") if args.exporter == "both" else (args.exporter,):
            path = os.path.join(args.folder, f"{name}_{exporter}.onnx")
            try:
                export(net, own, path, exporter)
            except Exception as error:  # torch's exporters raise what they like
                print(f"{path}: not exported: {str(error).strip().splitlines()[0]}", flush=True)
                continue
            print(f"{path} {own[0]}x{own[1]} {os.path.getsize(path)} bytes", flush=True)


if __name__ == "__main__":
    main()
