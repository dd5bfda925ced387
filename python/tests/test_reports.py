"""Layers and stages: the program's figures, and tables that can be read."""

import json

import pytest
import rfexec
from conftest import TOP

MODEL = TOP / "data" / "defect_net.onnx"


@pytest.mark.parametrize("model", [MODEL, "squeezenet1_1"])
def test_layers_are_the_programs(program, model):
    layers = rfexec.open(model, (97, 130)).analyze()
    want = json.loads(program("analyze", model, "--size", "97x130", "--json"))
    assert [layer.name for layer in layers] == [row["name"] for row in want["layers"]]
    for layer, row in zip(layers, want["layers"]):
        assert layer.op == row["op"]
        for name in ("macs", "output_bytes", "live_bytes"):
            assert getattr(layer, name) == row[name], (layer.name, name)
        assert layer.parameters == row["params"]
        assert (layer.field is None) == row["global"]
        if layer.field is not None:
            assert list(layer.field) == row["rf"]
            assert list(layer.jump) == row["jump"]
            assert list(layer.field_padding) == row["rf_padding"]
        if len(layer.shape) == 4:
            assert list(layer.shape[1:]) == row["output"]
    assert (layers.macs, layers.parameters) == (want["totals"]["macs"], want["totals"]["params"])


def test_layers_read():
    layers = rfexec.open("squeezenet1_1", (97, 130)).analyze()
    lines = repr(layers).splitlines()
    assert lines[0].split()[:4] == ["layer", "op", "shape", "field"]
    assert len(lines) == len(layers) + 2 and "MACs" in lines[-1]
    assert layers[-1].field is None and "all" in lines[-2]
    assert layers._repr_html_().count("<tr>") == len(layers) + 1


@pytest.mark.parametrize("memory", [None, "24MiB", "least"])
def test_stages_are_the_programs(program, memory):
    net = rfexec.open("resnet18", (257, 193))
    least = memory == "least"
    if least:
        with pytest.raises(rfexec.BudgetError) as failure:
            net.plan(memory=1, threads=1)
        memory = failure.value.forecast.peak_bytes
    forecast, stages = net.plan(memory, 1), net.stages(memory, 1)
    if not least:  # the program's picture takes some bytes too
        options = [] if memory is None else ["--memory", memory]
        want = program("plan", "resnet18", "synthetic:257x193", "--threads", 1, "--json", *options)
        rows = json.loads(want)["plan"]["stages"]
        assert [stage.mode for stage in stages] == [row["mode"] for row in rows]
        assert [stage.first for stage in stages] == [row["first"] for row in rows]
        assert [stage.band_rows for stage in stages] == [row["band_rows"] for row in rows]
        assert [list(stage.tiles) for stage in stages] == [row["tiles"] for row in rows]
    assert sum(stage.macs for stage in stages) == forecast.macs
    assert 0 < max(stage.arena_bytes for stage in stages) <= forecast.activation_bytes
    lines = repr(stages).splitlines()
    assert len(lines) == len(stages) + 1 and lines[1].startswith(stages[0].mode)
    with net.prepare(memory, 1) as runner:
        assert runner.stages() == stages
    with pytest.raises(rfexec.UsageError, match="closed"):
        runner.stages()


def test_no_budget():
    with pytest.raises(rfexec.BudgetError, match="at least"):
        rfexec.open("resnet18", (257, 193)).stages(memory="1MiB")
