"""Layers of a network and stages of a plan, as values that print as tables."""

from __future__ import annotations

import ctypes
import html
from dataclasses import dataclass
from typing import Any, Iterable, Optional

from . import _c
from ._call import Call
from ._forecast import show_bytes


@dataclass(frozen=True)
class Layer:
    """A layer of a network. Pairs are (rows, columns).

    Attributes:
        name, op: its name and operator.
        shape: the shape of its output, in ONNX order.
        field: the receptive field of one output value, in image pixels; None if it is the whole image.
        field_padding: how far the first value's receptive field begins before the image, in pixels.
        jump: the distance between the receptive fields of neighbouring values, in pixels.
        macs: multiply-accumulates of the untiled run.
        parameters: number of weights.
        output_bytes: bytes of its output.
        live_bytes: bytes of all tensors that are alive while the layer runs untiled.
    """

    name: str
    op: str
    shape: tuple[int, ...]
    field: Optional[tuple[int, int]]
    field_padding: Optional[tuple[int, int]]
    jump: Optional[tuple[float, float]]
    macs: int
    parameters: int
    output_bytes: int
    live_bytes: int


@dataclass(frozen=True)
class Stage:
    """A stage of a plan: some layers that run in one mode. Stages run one after the other.

    Attributes:
        mode: "whole", "tiled" or "streamed".
        first, last: names of the first and last layer.
        tiles: (rows, columns) of the tile grid; column strips of a stream.
        band_rows: image rows per step of a stream; else 0.
        macs: multiply-accumulates.
        arena_bytes: bytes of the arena that are in use during the stage.
        spilled_bytes: bytes that the stage writes to files.
    """

    mode: str
    first: str
    last: str
    tiles: tuple[int, int]
    band_rows: int
    macs: int
    arena_bytes: int
    spilled_bytes: int


class _Table(list[Any]):
    """A list that prints as a table."""

    _columns: tuple[str, ...] = ()

    def _row(self, item: object) -> tuple[str, ...]:
        raise NotImplementedError

    def _foot(self) -> str:
        return ""

    def __repr__(self) -> str:
        rows = [self._columns, *(self._row(item) for item in self)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(self._columns))]
        lines = [
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths))
            ).rstrip()
            for row in rows
        ]
        return "\n".join(lines + [self._foot()] if self._foot() else lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self._columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in self._row(item)) + "</tr>"
            for item in self
        )
        return f"<table><tr>{head}</tr>{body}</table>{html.escape(self._foot())}"


def _pair(pair: Optional[tuple[Any, ...]], none: str = "-") -> str:
    if pair is None:
        return none
    return f"{pair[0]:g}" if pair[0] == pair[1] else f"{pair[0]:g}x{pair[1]:g}"


class Layers(_Table):
    """The layers of a network, in the order of execution."""

    _columns = ("layer", "op", "shape", "field", "jump", "MACs", "parameters", "live")

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all layers in the untiled run."""
        return sum(layer.macs for layer in self)

    @property
    def parameters(self) -> int:
        """Number of weights of all layers."""
        return sum(layer.parameters for layer in self)

    def _row(self, item: Layer) -> tuple[str, ...]:  # type: ignore[override]
        return (
            item.name,
            item.op,
            "x".join(map(str, item.shape)),
            _pair(item.field, "all"),
            _pair(item.jump),
            f"{item.macs:,}",
            f"{item.parameters:,}",
            show_bytes(item.live_bytes),
        )

    def _foot(self) -> str:
        return f"{self.macs:,} MACs, {self.parameters:,} parameters"


class Stages(_Table):
    """The stages of a plan, in the order of execution."""

    _columns = ("mode", "layers", "tiles", "rows", "MACs", "arena", "spilled")

    def _row(self, item: Stage) -> tuple[str, ...]:  # type: ignore[override]
        return (
            item.mode,
            item.first if item.first == item.last else f"{item.first} .. {item.last}",
            f"{item.tiles[0]}x{item.tiles[1]}",
            str(item.band_rows) if item.band_rows else "-",
            f"{item.macs:,}",
            show_bytes(item.arena_bytes),
            show_bytes(item.spilled_bytes) if item.spilled_bytes else "-",
        )


def layers_of(raw: "ctypes.Array[_c.LayerReport]") -> Layers:
    return Layers(
        Layer(
            name=_c.text(r.name),
            op=_c.text(r.op),
            shape=tuple(r.dims[: r.n_dims]),
            field=None if getattr(r, "global") else tuple(r.field),
            field_padding=None if getattr(r, "global") else tuple(r.field_padding),
            jump=None if getattr(r, "global") else tuple(r.jump),
            macs=r.macs,
            parameters=r.parameters,
            output_bytes=r.output_bytes,
            live_bytes=r.live_bytes,
        )
        for r in raw
    )


def stages_of(raw: Iterable[_c.StageReport]) -> Stages:
    return Stages(
        Stage(
            mode=_c.text(r.mode),
            first=_c.text(r.first),
            last=_c.text(r.last),
            tiles=tuple(r.tiles),
            band_rows=r.band_rows,
            macs=r.macs,
            arena_bytes=r.arena_bytes,
            spilled_bytes=r.spilled_bytes,
        )
        for r in raw
    )


_MOST_STAGES = 1000  # more than any plan has


def read_stages(call: Call, function: Any, *arguments: Any) -> Stages:
    """Calls a C function that describes the stages of a plan."""
    raw = (_c.StageReport * _MOST_STAGES)()
    count = ctypes.c_int()
    size = ctypes.sizeof(_c.StageReport)
    call.make(function, *arguments, raw, size, _MOST_STAGES, ctypes.byref(count))
    return stages_of(raw[: count.value])
