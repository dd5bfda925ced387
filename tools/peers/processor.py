"""The processor that figures belong to: times mean nothing without it."""

import os
import pathlib
import platform
import re
import subprocess

# What the kernels of the programs compared choose by, as /proc/cpuinfo calls them.
EXTENSIONS = ("sse4_2", "avx", "f16c", "fma", "avx2", "avx_vnni", "avx512f", "avx512dq", "avx512bw",
              "avx512vl", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve", "sve2")


def _cpuinfo():
    """The first processor's entries of /proc/cpuinfo; empty where there is no such file."""
    try:
        first = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _caches():
    """Bytes of one L2 and one L3 as the kernel says, 0 where it does not."""
    found = {2: 0, 3: 0}
    for folder in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level = int((folder / "level").read_text())
            size = re.fullmatch(r"(\d+)([KM]?)", (folder / "size").read_text().strip())
        except (OSError, ValueError):
            continue
        if level in found and size:
            found[level] = int(size[1]) << {"": 0, "K": 10, "M": 20}[size[2]]
    return found


def _lscpu(field):
    try:
        text = subprocess.run(["lscpu"], capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C"}).stdout
    except OSError:
        return ""
    found = re.search(rf"^{re.escape(field)}:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else ""


def processor():
    """A dict for the JSON report."""
    info, caches = _cpuinfo(), _caches()
    flags = set((info.get("flags") or info.get("Features") or "").split())
    return {
        "model": info.get("model name") or _lscpu("Model name") or platform.machine(),
        "architecture": platform.machine(),
        "vendor": info.get("vendor_id") or _lscpu("Vendor ID"),
        "family": info.get("cpu family", ""),
        "model_number": info.get("model", ""),
        "extensions": [name for name in EXTENSIONS if name in flags],
        "processors": len(os.sched_getaffinity(0)),
        "l2_bytes": caches[2],
        "l3_bytes": caches[3],
        "hypervisor": _lscpu("Hypervisor vendor"),
        "system": platform.platform(),
        "load_average": os.getloadavg()[0],
    }


def _size(value):
    return "unknown" if value == 0 else f"{value / 2**20:g} MiB"


def describe(found):
    """The same in one paragraph of text."""
    family = f", family {found['family']} model {found['model_number']}" if found["family"] else ""
    virtual = f" under {found['hypervisor']}" if found["hypervisor"] else ""
    return (f"{found['model']} ({found['vendor']}{family}){virtual}, {found['processors']} "
            f"processors, L2 {_size(found['l2_bytes'])} each, L3 {_size(found['l3_bytes'])}; "
            f"{' '.join(found['extensions'])}. Load average at the start: "
            f"{found['load_average']:.2f}.")
