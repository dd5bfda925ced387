"""The structs of rfexec/_c.py against what a C compiler makes of the header and the bridge."""

import ctypes
import os
import re
import shutil
import subprocess

import pytest
from conftest import TOP
from rfexec import _c

HEADER = TOP / "rfexec" / "include" / "rfexec" / "rfexec.h"
STRUCTS = {
    "rfx_why": _c.Why,
    "rfx_open_options": _c.OpenOptions,
    "rfx_result_file": _c.ResultFile,
    "rfx_run_options": _c.RunOptions,
    "rfx_area": _c.Area,
    "rfx_source": _c.Source,
    "rfx_forecast": _c.Forecast,
    "rfx_layer_report": _c.LayerReport,
    "rfx_stage_report": _c.StageReport,
    "rfx_step_report": _c.StepReport,
    "rfxpy_call": _c.BridgeCall,
}
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_structs(tmp_path):
    lines = ['#include "bridge.c"', "#include <stdio.h>", "int main(void) {"]
    for name, struct in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        for field in struct._fields_:
            lines.append(
                f'printf("{name}.{field[0]} %zu %zu\\n", offsetof(struct {name}, {field[0]}), '
                f"sizeof(((struct {name} *)0)->{field[0]}));"
            )
    (tmp_path / "sizes.c").write_text("\n".join([*lines, "}"]))
    include = [f"-I{HEADER.parents[1]}", f"-I{TOP / 'python' / 'src'}"]
    subprocess.run(
        [COMPILER, "-D_GNU_SOURCE", *include, "sizes.c", "-o", "sizes", "-pthread"],
        cwd=tmp_path,
        check=True,
    )
    said = subprocess.run([tmp_path / "sizes"], capture_output=True, text=True).stdout
    mine = []
    for name, struct in STRUCTS.items():
        mine.append(f"{name} {ctypes.sizeof(struct)}")
        for field in struct._fields_:
            place = getattr(struct, field[0])
            mine.append(f"{name}.{field[0]} {place.offset} {place.size}")
    assert said.splitlines() == mine


def test_functions():
    """Each that is used is declared, with as many arguments."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    declared = {
        name: 0 if arguments.strip() == "void" else arguments.count(",") + 1
        for name, arguments in re.findall(r"RFX_API[^;(]*?(rfx_\w+)\(([^;]*)\);", text)
    }
    assert len(declared) >= len(_c._FUNCTIONS)
    for name, (_, arguments) in _c._FUNCTIONS.items():
        assert declared[name] == len(arguments), name
