"""The C interface (rfexec/rfexec.h) and the bridge, by ctypes.

The structs are those of the header that the packed library was built with; each says its size, and
tests/test_header.py compares their members with what a C compiler makes of the header.
"""

from __future__ import annotations

import ctypes
import site
import sys
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_float, c_int, c_int64, c_size_t
from ctypes import c_uint64, c_ulong, c_void_p
from pathlib import Path

MAX_DIMS = 8


class Why(ctypes.Structure):
    _fields_ = [("text", c_char * 512)]


class OpenOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("rows", c_int64),
        ("columns", c_int64),
        ("seed", c_uint64),
        ("convolution", c_int),
        ("allocate", c_void_p),
        ("release", c_void_p),
        ("memory_user", c_void_p),
        ("pad_to", c_int64),
        ("padding", c_int),
        ("int8", c_int),
        ("dequantize", c_int),
        ("join_heads", c_int),
        ("head_file", c_char_p),
        ("late_nodes", c_int),
    ]


class Area(ctypes.Structure):
    _fields_ = [
        ("row", c_int64),
        ("column", c_int64),
        ("rows", c_int64),
        ("columns", c_int64),
        ("channels", c_int64),
        ("row_step", c_int64),
        ("column_step", c_int64),
        ("channel_step", c_int64),
    ]


# Python functions that the bridge calls. Values are addresses, of which Python makes arrays.
READ = CFUNCTYPE(c_int, POINTER(Area), c_void_p)
WRITE = CFUNCTYPE(c_int, c_int, POINTER(Area), c_void_p)
PROGRESS = CFUNCTYPE(c_int, c_int64, c_int64)


class StepReport(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("stage", c_int),
        ("n_stages", c_int),
        ("work", c_int),
        ("layer", c_int),
        ("name", c_char_p),
        ("output", c_int),
        ("step", c_int64),
        ("done", c_int64),
        ("total", c_int64),
        ("row", c_int64),
        ("column", c_int64),
        ("rows", c_int64),
        ("columns", c_int64),
        ("channels", c_int64),
        ("planned_bytes", c_uint64),
        ("held_bytes", c_uint64),
        ("seconds", c_double),
    ]


OBSERVE = CFUNCTYPE(c_int, POINTER(StepReport))


class ResultFile(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("output", c_int),
        ("bits", c_int),
        ("path", c_char_p),
        ("low", c_float),
        ("high", c_float),
        ("compression", c_char_p),
        ("overviews", c_char_p),
        ("channel_names", c_char_p),
        ("tile", c_int),
        ("cog", c_int),
        ("zarr_format", c_int),
        ("chunk", c_int64),
        ("thresholds", POINTER(c_float)),
        ("n_thresholds", c_int),
        ("corners", c_int),
        ("all_labels", c_int),
        ("pixels", c_int),
        ("least_area", c_int64),
        ("classes", c_char_p),
        ("answer_bytes", c_uint64),
        ("head", c_char_p),
        ("score", c_float),
        ("agnostic", c_int),
        ("overlap", c_double),
        ("most_boxes", c_int64),
        ("distance", c_int64),
        ("within", c_char_p),
        ("bins", c_int64),
        ("bins_low", c_double),
        ("bins_high", c_double),
        ("simplify", c_double),
        ("soft_nms", c_int),
        ("class_count", c_int64),
        ("quantiles", POINTER(c_double)),
        ("n_quantiles", c_int),
    ]


class RunOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("memory_bytes", c_size_t),
        ("progress", c_void_p),
        ("user", c_void_p),
        ("threads", c_int),
        ("bgr", c_int),
        ("raw", c_int),
        ("scale", c_float),
        ("mean", POINTER(c_float)),
        ("std", POINTER(c_float)),
        ("n_mean", c_int),
        ("n_std", c_int),
        ("max_pixels", c_int64),
        ("stop", c_void_p),
        ("write", c_void_p),
        ("spill_folder", c_char_p),
        ("page", c_int64),
        ("channels", POINTER(c_int)),
        ("n_channels", c_int),
        ("as_stored", c_int),
        ("observe", c_void_p),
        ("region_row", c_int64),
        ("region_column", c_int64),
        ("region_rows", c_int64),
        ("region_columns", c_int64),
        ("files", POINTER(ResultFile)),
        ("n_files", c_int),
        ("plan_file", c_char_p),
        ("typed_outputs", c_int),
        ("mask", c_char_p),
    ]


class Forecast(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("peak_bytes", c_size_t),
        ("activation_bytes", c_size_t),
        ("weight_bytes", c_size_t),
        ("scratch_bytes", c_size_t),
        ("picture_bytes", c_size_t),
        ("reserve_bytes", c_size_t),
        ("macs", c_uint64),
        ("macs_whole", c_uint64),
        ("plan", c_char * 400),
        ("spilled_bytes", c_uint64),
    ]


class Source(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("values", c_void_p),
        ("row_step", c_int64),
        ("column_step", c_int64),
        ("channel_step", c_int64),
        ("read", c_void_p),
        ("user", c_void_p),
        ("concurrent", c_int),
        ("samples", c_void_p),
        ("sample_bits", c_int),
    ]


class LayerReport(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("op", c_char_p),
        ("n_dims", c_int),
        ("global", c_int),
        ("dims", c_int64 * MAX_DIMS),
        ("field", c_int64 * 2),
        ("field_padding", c_int64 * 2),
        ("jump", c_double * 2),
        ("macs", c_uint64),
        ("parameters", c_uint64),
        ("output_bytes", c_uint64),
        ("live_bytes", c_uint64),
    ]


class StageReport(ctypes.Structure):
    _fields_ = [
        ("mode", c_char_p),
        ("first", c_char_p),
        ("last", c_char_p),
        ("tiles", c_int64 * 2),
        ("band_rows", c_int64),
        ("macs", c_uint64),
        ("arena_bytes", c_uint64),
        ("spilled_bytes", c_uint64),
    ]


class BridgeCall(ctypes.Structure):
    """struct rfxpy_call of src/bridge.c."""

    _fields_ = [
        ("progress", c_void_p),
        ("read", c_void_p),
        ("write", c_void_p),
        ("observe", c_void_p),
        ("caller", c_ulong),
        ("next_look", c_int64),
        ("next_progress", c_int64),
        ("raised", c_void_p * 3),
        ("looks", c_int),
        ("lost", c_int),
        ("wanted", c_int),
    ]


_Dims = c_int64 * MAX_DIMS
_Outputs = POINTER(c_void_p)

# name: result, arguments
_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "rfx_version": (c_char_p, []),
    "rfx_open_options_init": (None, [POINTER(OpenOptions), c_size_t]),
    "rfx_network_open": (
        c_int,
        [c_char_p, POINTER(OpenOptions), POINTER(c_void_p), POINTER(Why)],
    ),
    "rfx_network_open_memory": (
        c_int,
        [c_void_p, c_size_t, POINTER(OpenOptions), POINTER(c_void_p), POINTER(Why)],
    ),
    "rfx_network_open_part": (
        c_int,
        [c_void_p, c_int, POINTER(Area), POINTER(c_void_p), POINTER(Why)],
    ),
    "rfx_network_input_area": (None, [c_void_p, POINTER(Area)]),
    "rfx_bytes_data": (c_void_p, [c_void_p]),
    "rfx_bytes_size": (c_size_t, [c_void_p]),
    "rfx_bytes_free": (None, [c_void_p]),
    "rfx_network_rounds": (c_int, [c_void_p, c_int, POINTER(c_int), POINTER(Why)]),
    "rfx_round_open": (
        c_int,
        [c_void_p, c_int, c_int, c_int64, c_int64, POINTER(c_void_p), POINTER(Why)],
    ),
    "rfx_round_free": (None, [c_void_p]),
    "rfx_round_input_area": (None, [c_void_p, POINTER(Area)]),
    "rfx_round_run_file": (
        c_int,
        [
            c_void_p,
            c_void_p,
            c_size_t,
            c_char_p,
            POINTER(RunOptions),
            POINTER(c_void_p),
            POINTER(Why),
        ],
    ),
    "rfx_round_run_source": (
        c_int,
        [
            c_void_p,
            c_void_p,
            c_size_t,
            POINTER(Source),
            POINTER(RunOptions),
            POINTER(c_void_p),
            POINTER(Why),
        ],
    ),
    "rfx_network_merge_states": (
        c_int,
        [
            c_void_p,
            POINTER(c_void_p),
            POINTER(c_size_t),
            c_int,
            POINTER(c_void_p),
            POINTER(Why),
        ],
    ),
    "rfx_network_open_part_after": (
        c_int,
        [
            c_void_p,
            c_int,
            POINTER(Area),
            c_void_p,
            c_size_t,
            POINTER(c_void_p),
            POINTER(Why),
        ],
    ),
    "rfx_network_part_area_after": (
        c_int,
        [c_void_p, c_int, POINTER(Area), POINTER(Area), POINTER(Why)],
    ),
    "rfx_network_free": (None, [c_void_p]),
    "rfx_network_input_shape": (None, [c_void_p, _Dims]),
    "rfx_network_input_name": (c_char_p, [c_void_p]),
    "rfx_network_output_count": (c_int, [c_void_p]),
    "rfx_network_output_name": (c_char_p, [c_void_p, c_int]),
    "rfx_network_output_shape": (c_int, [c_void_p, c_int, _Dims]),
    "rfx_network_output_elements": (c_int64, [c_void_p, c_int]),
    "rfx_network_output_type": (c_char_p, [c_void_p, c_int]),
    "rfx_network_output_map": (c_int, [c_void_p, c_int, POINTER(Area)]),
    "rfx_picture_size_with": (
        c_int,
        [
            c_char_p,
            POINTER(RunOptions),
            POINTER(c_int64),
            POINTER(c_int64),
            POINTER(c_int64),
            POINTER(Why),
        ],
    ),
    "rfx_result_file_init": (None, [POINTER(ResultFile), c_size_t]),
    "rfx_run_options_init": (None, [POINTER(RunOptions), c_size_t]),
    "rfx_network_predict": (
        c_int,
        [c_void_p, c_char_p, POINTER(RunOptions), POINTER(Forecast), POINTER(Why)],
    ),
    "rfx_network_layer_count": (c_int, [c_void_p]),
    "rfx_network_layers": (c_int, [c_void_p, POINTER(LayerReport), c_size_t, POINTER(Why)]),
    "rfx_network_stages": (
        c_int,
        [
            c_void_p,
            c_char_p,
            POINTER(RunOptions),
            POINTER(StageReport),
            c_size_t,
            c_int,
            POINTER(c_int),
            POINTER(Why),
        ],
    ),
    "rfx_network_run_file": (
        c_int,
        [c_void_p, c_char_p, _Outputs, c_int, POINTER(RunOptions), POINTER(Why)],
    ),
    "rfx_network_run_source": (
        c_int,
        [c_void_p, POINTER(Source), _Outputs, c_int, POINTER(RunOptions), POINTER(Why)],
    ),
    "rfx_model_open": (
        c_int,
        [c_char_p, POINTER(OpenOptions), POINTER(c_void_p), POINTER(Why)],
    ),
    "rfx_model_open_memory": (
        c_int,
        [c_void_p, c_size_t, POINTER(OpenOptions), POINTER(c_void_p), POINTER(Why)],
    ),
    "rfx_model_free": (None, [c_void_p]),
    "rfx_model_plan_create": (
        c_int,
        [
            c_void_p,
            c_int64,
            c_int64,
            c_char_p,
            POINTER(RunOptions),
            POINTER(c_void_p),
            POINTER(Why),
        ],
    ),
    "rfx_model_plan_free": (None, [c_void_p]),
    "rfx_model_plan_network": (c_void_p, [c_void_p]),
    "rfx_model_plan_forecast": (c_int, [c_void_p, POINTER(Forecast), POINTER(Why)]),
    "rfx_model_plan_stages": (
        c_int,
        [c_void_p, POINTER(StageReport), c_size_t, c_int, POINTER(c_int), POINTER(Why)],
    ),
    "rfx_model_plan_save": (c_int, [c_void_p, c_char_p, POINTER(Why)]),
    "rfx_model_plan_runner": (c_int, [c_void_p, POINTER(c_void_p), POINTER(Why)]),
    "rfx_runner_create": (
        c_int,
        [c_void_p, POINTER(RunOptions), POINTER(c_void_p), POINTER(Why)],
    ),
    "rfx_runner_free": (None, [c_void_p]),
    "rfx_runner_forecast": (c_int, [c_void_p, POINTER(Forecast), POINTER(Why)]),
    "rfx_runner_stages": (
        c_int,
        [c_void_p, POINTER(StageReport), c_size_t, c_int, POINTER(c_int), POINTER(Why)],
    ),
    "rfx_runner_run": (
        c_int,
        [c_void_p, POINTER(Source), _Outputs, c_int, POINTER(RunOptions), POINTER(Why)],
    ),
    "rfx_runner_run_file": (
        c_int,
        [c_void_p, c_char_p, _Outputs, c_int, POINTER(RunOptions), POINTER(Why)],
    ),
}


def _beside() -> Path:
    """The folder of the libraries: that of this file, or for an editable install the package's folder
    in site-packages."""
    folders = [Path(__file__).resolve().parent]
    folders += [Path(folder) for folder in getattr(sys.modules[__package__], "__path__", [])]
    folders += [Path(folder) / __package__ for folder in (*site.getsitepackages(), *sys.path)]
    return next((f for f in folders if (f / "librfexec.so").is_file()), folders[0])


_here = _beside()
library = ctypes.CDLL(str(_here / "librfexec.so"))  # calls release the interpreter's lock
for _name, (_result, _arguments) in _FUNCTIONS.items():
    _function = getattr(library, _name)
    _function.restype = _result
    _function.argtypes = _arguments

bridge = ctypes.CDLL(str(_here / "librfexec_bridge.so"))
bridge.rfxpy_begin.argtypes = [POINTER(BridgeCall)]
bridge.rfxpy_begin.restype = None
bridge.rfxpy_stop_call.argtypes = [POINTER(BridgeCall)]
bridge.rfxpy_stop_call.restype = None
bridge.rfxpy_call_bytes.restype = c_uint64
if bridge.rfxpy_call_bytes() != ctypes.sizeof(BridgeCall):
    raise ImportError("rfexec: librfexec_bridge.so is of another version than the package")


def _address(function: object) -> int | None:
    return ctypes.cast(function, c_void_p).value  # type: ignore[arg-type]


_python = ctypes.pythonapi
bridge.rfxpy_set_python.argtypes = [c_void_p] * 4
bridge.rfxpy_set_python.restype = None
bridge.rfxpy_set_python(
    _address(_python.PyGILState_Ensure),
    _address(_python.PyGILState_Release),
    _address(_python.PyErr_CheckSignals),
    _address(_python.PyErr_Fetch),
)
stop_address = _address(bridge.rfxpy_stop)
progress_address = _address(bridge.rfxpy_progress)
read_address = _address(bridge.rfxpy_read)
write_address = _address(bridge.rfxpy_write)
observe_address = _address(bridge.rfxpy_observe)


def raise_again(raised: object) -> None:
    """Raises the exception that the bridge has kept; the bridge no longer owns it."""
    restore = _python.PyErr_Restore
    restore.argtypes, restore.restype = [c_void_p] * 3, None
    restore(*raised)  # type: ignore[misc]


def text(raw: bytes | None) -> str:
    return "" if raw is None else raw.decode("utf-8", "replace")
