"""Exports torchvision networks with random weights as ONNX files, with both of torch's exporters.

    python tools/scripts/export_torchvision.py OUT_DIR [NAME ...]

For each network (default: mobilenet_v2 and resnet50) four files: <name>_<exporter>_<static|dynamic>.onnx
with exporter ts (TorchScript) or dynamo. Needs torch, torchvision, onnx and onnxscript.

To hold rfexec to ONNX Runtime on all of them, untiled and in tiles (onnxruntime needed too):

    python tests/oracle/check_models.py build/rfexec OUT_DIR/*.onnx \\
        --sizes 224x224,513x769,1024x1024 --tiles 3x2"""

import importlib.util
import os
import re
import sys
import warnings

import torch


def declare_missing_ops():
    """Where torchvision's C++ ops are not built, its import still registers fake kernels for them:
    gives each an operator of that name, which no network here calls."""
    folder = importlib.util.find_spec("torchvision").submodule_search_locations[0]
    with open(os.path.join(folder, "_meta_registrations.py"), encoding="utf-8") as source:
        names = re.findall(r"torchvision::(\w+)", source.read())
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in sorted(set(names)):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor x) -> Tensor")
    return library


def import_models():
    try:
        import torchvision.models as models

        return models, None
    except RuntimeError:  # its C++ ops are not built
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
    library = declare_missing_ops()
    import torchvision.models as models

    return models, library


def randomise_batch_norms(net):
    """Statistics away from 0 and 1, so that a mistake in folding them shows."""
    generator = torch.Generator().manual_seed(7)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            n = module.num_features
            module.running_mean.copy_(torch.randn(n, generator=generator) * 0.1)
            module.running_var.copy_(torch.rand(n, generator=generator) + 0.5)
            module.weight.data.copy_(torch.rand(n, generator=generator) * 0.5 + 0.75)
            module.bias.data.copy_(torch.randn(n, generator=generator) * 0.1)


def export(net, path, dynamo, dynamic):
    image = torch.zeros(1, 3, 224, 224)
    options = {"input_names": ["image"], "output_names": ["scores"], "dynamo": dynamo}
    if dynamo:
        options["external_data"] = False
        options["verbose"] = False
        if dynamic:
            height = torch.export.Dim("height", min=64, max=8192)
            width = torch.export.Dim("width", min=64, max=8192)
            options["dynamic_shapes"] = ({2: height, 3: width},)
    elif dynamic:
        options["dynamic_axes"] = {"image": {0: "n", 2: "h", 3: "w"}, "scores": {0: "n"}}
    torch.onnx.export(net, (image,), path, **options)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    warnings.filterwarnings("ignore")
    folder, names = sys.argv[1], sys.argv[2:] or ["mobilenet_v2", "resnet50"]
    os.makedirs(folder, exist_ok=True)
    models, _library = import_models()
    for name in names:
        torch.manual_seed(1)
        net = getattr(models, name)(weights=None).eval()
        with torch.no_grad():
            randomise_batch_norms(net)
            for exporter in ("ts", "dynamo"):
                for dynamic in (False, True):
                    kind = "dynamic" if dynamic else "static"
                    path = os.path.join(folder, f"{name}_{exporter}_{kind}.onnx")
                    export(net, path, exporter == "dynamo", dynamic)
                    print(path, os.path.getsize(path), flush=True)


if __name__ == "__main__":
    main()
