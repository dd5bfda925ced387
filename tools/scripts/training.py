"""What the scripts that train the shipped networks share: their options, the loop, the ONNX file."""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image


class OnnxWriter:
    """Collects nodes and constants; a node's output has its name."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def node(self, op, inputs, out, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [out], name=out, **attributes))
        return out

    def save(self, path, name, channels, output, kinds, stride, producer):
        """Input "image" of so many channels, height and width left open (opset 17); an output
        channel for each of `kinds`, at 1/stride of the size."""
        graph = helper.make_graph(
            self.nodes, name,
            [helper.make_tensor_value_info("image", TensorProto.FLOAT,
                                           [1, channels, "height", "width"])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT,
                                           [1, len(kinds), "rows", "columns"])], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                  producer_name=producer)
        model.ir_version = 8
        helper.set_model_props(model, {"channels": ",".join(kinds), "stride": str(stride)})
        onnx.checker.check_model(model)
        onnx.save(model, path)


def read_options(doc, generator, **numbers):
    """The options of a training script: `numbers` are its own, by name, with their defaults."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--generator", required=True, help=f"path of {generator}")
    parser.add_argument("--out", required=True)
    for name, value in numbers.items():
        parser.add_argument("--" + name, type=type(value), default=value)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def make_picture(generator, folder, size, seed, *words):
    """One made picture and its truth: uint8 arrays."""
    image, mask = os.path.join(folder, "image.png"), os.path.join(folder, "mask.png")
    subprocess.run([generator, size, image, "--mask", mask, "--seed", str(seed), *words],
                   check=True)
    return np.asarray(Image.open(image)), np.asarray(Image.open(mask))


def begin(args, make):
    """Fixes threads and seed; the network that `make` makes."""
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    net = make()
    print(f"{sum(p.numel() for p in net.parameters())} parameters", flush=True)
    return net


def train(net, args, batches, loss_of, after):
    """args.steps steps of AdamW at a rate that rises and falls. loss_of(output, *targets) of each
    batch (input, *targets); after(step, told, folder): told is the progress in words."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.rate, total_steps=args.steps,
                                                   pct_start=0.15)
    start, mean_loss = time.time(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        for step, (x, *targets) in enumerate(batches(args, folder), 1):
            loss = loss_of(net(x), *targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            mean_loss += (loss.item() - mean_loss) / min(step, 50)
            after(step, f"step {step}, {time.time() - start:.0f} s, loss {mean_loss:.5f}", folder)
            if step == args.steps:
                break
