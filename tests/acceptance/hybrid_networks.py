"""Hybrid networks of thousands of nodes, as exporters write them, for smallest_budgets.py.

    hybrid_networks.py SEED NODES FILE.onnx

A network is a stem and blocks drawn at random: inverted bottlenecks with squeeze and excitation, attention in
windows and in grids, attention of all tokens, norms of channels written out or as one operator, instance norms,
residual convolutions, concatenations with global pools. A third of the shapes of reshapes are computed by nodes
from a shape, as TorchScript does. The end is a map of 3 channels or ten classes.
"""

import random
import struct
import sys

from onnx_bytes import FLOAT, INT64, constant, node, write_model

HEAD = 8  # channels of an attention head


class Network:
    """Nodes and constants so far; `of` is the tensor that the next block reads."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.nodes, self.constants, self.known, self.count = [], [], {}, 0
        self.of = "x"
        self.size = self.rng.choice([(32, 32), (32, 48), (64, 48)])
        self.rows, self.columns = self.size
        self.channels = 3

    def op(self, op, *inputs, outputs=1, **attributes):
        """The name of what a new node makes; several: a list."""
        names = [f"t{self.count}_{i}" for i in range(outputs)]
        self.count += 1
        self.nodes.append(node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def numbers(self, *values, scalar=False):
        """A constant of whole numbers; every second one is a node, as in exports."""
        name = f"i{'s' if scalar else ''}_{'_'.join(map(str, values))}"
        if name not in self.known:
            self.known[name] = True
            data = struct.pack(f"<{len(values)}q", *values)
            self.constants.append(constant(name, INT64, () if scalar else (len(values),), data))
        return name

    def scalar(self, number):
        name = f"f_{number}"
        if name not in self.known:
            self.known[name] = True
            self.constants.append(constant(name, FLOAT, (), struct.pack("<f", number)))
        return name

    def weight(self, *dims):
        """Random weights, small enough for a deep network."""
        count, fan = 1, 1
        for dim in dims:
            count *= dim
        for dim in dims[1:] if len(dims) == 4 else dims[:-1]:
            fan *= dim
        scale = (1.0 / fan) ** 0.5
        name = f"w{len(self.constants)}"
        block = [self.rng.uniform(-scale, scale) for _ in range(min(count, 251))]
        values = (block * (count // len(block) + 1))[:count]
        self.constants.append(constant(name, FLOAT, dims, struct.pack(f"<{count}f", *values)))
        return name

    def conv(self, source, to, side=1, stride=1, groups=1, channels=None):
        channels = channels or self.channels
        return self.op("Conv", source, self.weight(to, channels // groups, side, side), self.weight(to),
                       kernel_shape=[side, side], strides=[stride, stride], pads=[side // 2] * 4, group=groups)

    def reshape(self, source, *dims):
        if self.rng.random() < 0.67:
            return self.op("Reshape", source, self.numbers(*dims))
        shape, parts = self.op("Shape", "x"), []
        one = self.op("Gather", shape, self.numbers(0, scalar=True), axis=0)
        for dim in dims:  # the batch, which is one, times each
            part = self.op("Mul", one, self.numbers(dim, scalar=True))
            parts.append(self.op("Unsqueeze", part, self.numbers(0)))
        return self.op("Reshape", source, self.op("Concat", *parts, axis=0))

    def silu(self, source):
        return self.op("Mul", source, self.op("Sigmoid", source))

    def gelu(self, source):
        inner = self.op("Erf", self.op("Div", source, self.scalar(2**0.5)))
        product = self.op("Mul", source, self.op("Add", inner, self.scalar(1.0)))
        return self.op("Mul", product, self.scalar(0.5))

    def norm(self, source):
        """Of the last axis."""
        scale, bias = self.weight(self.channels), self.weight(self.channels)
        if self.rng.random() < 0.5:
            return self.op("LayerNormalization", source, scale, bias, axis=-1, epsilon=1e-5)
        less = self.op("Sub", source, self.op("ReduceMean", source, axes=[-1]))
        power = self.op("ReduceMean", self.op("Pow", less, self.scalar(2.0)), axes=[-1])
        root = self.op("Sqrt", self.op("Add", power, self.scalar(1e-5)))
        return self.op("Add", self.op("Mul", self.op("Div", less, root), scale), bias)

    def linear(self, source, to, channels=None):
        product = self.op("MatMul", source, self.weight(channels or self.channels, to))
        return self.op("Add", self.weight(to), product)

    def mlp(self, source):
        wide = self.gelu(self.linear(source, 2 * self.channels))
        return self.linear(wide, self.channels, 2 * self.channels)

    def attention(self, tokens, *before):
        """Of tokens [*before, n, channels] to those with the same numbers before."""
        n, heads, k = before[-1], self.channels // HEAD, len(before)
        parts = self.op("Split", self.linear(tokens, 3 * self.channels), outputs=3, axis=-1)
        swap = [*range(k - 1), k, k - 1, k + 1]
        turned = [self.op("Transpose", self.reshape(p, *before, heads, HEAD), perm=swap) for p in parts]
        keys = self.op("Transpose", self.op("Mul", turned[1], self.scalar(HEAD**-0.5)),
                       perm=[*range(k), k + 1, k])
        scores = self.op("MatMul", turned[0], keys)
        if n <= 64:
            scores = self.op("Add", scores, self.weight(*[1] * (k - 1), heads, n, n))
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), turned[2])
        joined = self.reshape(self.op("Transpose", mixed, perm=swap), *before, self.channels)
        return self.linear(joined, self.channels)

    def transformer(self, tokens, *before):
        tokens = self.op("Add", tokens, self.attention(self.norm(tokens), *before))
        return self.op("Add", tokens, self.mlp(self.norm(tokens)))

    def windows(self, grid=False):
        """A MaxViT layer: attention in windows, or in grids of pixels that lie apart."""
        side = self.rng.choice([s for s in (2, 4, 8) if self.rows % s == 0 and self.columns % s == 0])
        down, across = self.rows // side, self.columns // side
        parts = (side, down, side, across) if grid else (down, side, across, side)
        turned = self.op("Transpose", self.reshape(self.of, 1, self.channels, *parts), perm=[0, 2, 4, 3, 5, 1])
        counts = (side * side, down * across) if grid else (down * across, side * side)
        tokens = self.reshape(turned, 1, *counts, self.channels)
        if grid:
            tokens = self.op("Transpose", tokens, perm=[0, 2, 1, 3])
        tokens = self.transformer(tokens, 1, down * across, side * side)
        if grid:
            tokens = self.op("Transpose", tokens, perm=[0, 2, 1, 3])
        first, second = (side, side) if grid else (down, across)
        back = self.reshape(tokens, 1, first, second, parts[1], parts[3], self.channels)
        back = self.op("Transpose", back, perm=[0, 5, 1, 3, 2, 4])
        self.of = self.reshape(back, 1, self.channels, self.rows, self.columns)

    def grids(self):
        self.windows(grid=True)

    def tokens(self):
        """Attention of every pixel to every pixel, of small maps."""
        if self.rows * self.columns > 512:
            return self.windows()
        flat = self.op("Transpose", self.reshape(self.of, 1, self.channels, -1), perm=[0, 2, 1])
        made = self.transformer(flat, 1, self.rows * self.columns)
        self.of = self.reshape(self.op("Transpose", made, perm=[0, 2, 1]), 1, self.channels, self.rows,
                               self.columns)
        return None

    def bottleneck(self):
        wide = 2 * self.channels
        inside = self.silu(self.conv(self.of, wide))
        inside = self.silu(self.conv(inside, wide, 3, groups=wide, channels=wide))
        pooled = self.op("GlobalAveragePool", inside) if self.rng.random() < 0.5 else \
            self.op("ReduceMean", inside, axes=[2, 3])
        gate = self.op("Relu", self.conv(pooled, 4, channels=wide))
        gate = self.op("Sigmoid", self.conv(gate, wide, channels=4))
        self.of = self.op("Add", self.conv(self.op("Mul", inside, gate), self.channels, channels=wide), self.of)

    def residual(self):
        inside = self.op("Relu", self.conv(self.of, self.channels, 3))
        self.of = self.op("Relu", self.op("Add", self.conv(inside, self.channels, 3), self.of))

    def modern(self):
        """A ConvNeXt block: a norm and a perceptron of channels in place."""
        inside = self.conv(self.of, self.channels, 7, groups=self.channels)
        inside = self.mlp(self.norm(self.op("Transpose", inside, perm=[0, 2, 3, 1])))
        self.of = self.op("Add", self.of, self.op("Transpose", inside, perm=[0, 3, 1, 2]))

    def instance(self):
        inside = self.op("InstanceNormalization", self.conv(self.of, self.channels, 3),
                         self.weight(self.channels), self.weight(self.channels), epsilon=1e-5)
        self.of = self.op("Add", self.of, self.op("LeakyRelu", inside, alpha=0.1))

    def pool(self):
        mean = self.op("GlobalAveragePool", self.of)
        spread = self.op("Mul", self.of, self.op("Sigmoid", self.conv(mean, self.channels)))
        self.of = self.conv(self.op("Concat", self.of, spread, axis=1), self.channels, channels=2 * self.channels)

    def down(self):
        """Half the rows and columns, and more channels."""
        wide = min(32, self.channels + 8)
        self.of = self.silu(self.conv(self.of, wide, 3, 2))
        self.channels, self.rows, self.columns = wide, self.rows // 2, self.columns // 2

    def blocks(self, count):
        """Blocks of a mixture of its own until so many nodes are there."""
        kinds = self.rng.sample([self.bottleneck, self.windows, self.grids, self.tokens, self.residual, self.modern,
                                 self.instance, self.pool], self.rng.randint(2, 5))
        stride = self.rng.choice([1, 2])
        self.of = self.conv("x", 16, 3, stride)
        self.channels, self.rows, self.columns = 16, self.rows // stride, self.columns // stride
        if self.nodes and self.rng.random() < 0.5:
            self.of = self.silu(self.of)
        downs = sorted(self.rng.uniform(0, count) for _ in range(2))
        while len(self.nodes) < count:
            if downs and len(self.nodes) > downs[0]:
                downs.pop(0)
                self.down()
            self.rng.choice(kinds)()

    def end(self, as_map):
        if as_map:
            return self.conv(self.of, 3)
        pooled = self.op("Flatten", self.op("GlobalAveragePool", self.of), axis=1)
        return self.op("Gemm", pooled, self.weight(self.channels, 10), self.weight(10))


def write(path, seed, count, as_map):
    """A network of about so many nodes in a file; returns the rows and columns that it takes."""
    network = Network(seed)
    network.blocks(count)
    output = network.end(as_map)
    write_model(path, network.nodes, [output], network.constants, (1, 3, *network.size), 17)
    return network.size


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    rows, columns = write(sys.argv[3], int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[1]) % 2 == 0)
    print(f"{rows}x{columns}")


if __name__ == "__main__":
    main()
