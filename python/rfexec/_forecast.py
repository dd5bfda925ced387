"""The forecast of a run, as a value that notebooks can show."""

from __future__ import annotations

import html
from dataclasses import dataclass

from . import _c


def show_bytes(n: int) -> str:
    """A number of bytes as text: 64 MiB, 1.5 GiB, 512 bytes."""
    value = float(n)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{n} bytes" if unit == "bytes" else f"{value:,.1f} {unit}"


@dataclass(frozen=True)
class Forecast:
    """Memory and work of a run that was planned but not run.

    Attributes:
        peak_bytes: the peak memory of the run, and the smallest `memory` for this plan. It is the sum of
            the five parts that follow. Your arrays come on top.
        activation_bytes: feature maps, tiles and ring buffers.
        weight_bytes: packed weights.
        scratch_bytes: workspace of the kernels.
        picture_bytes: the decoder of an image file, and writing output files.
        reserve_bytes: code, libraries, stacks and tables.
        macs: multiply-accumulates of the run.
        macs_whole: multiply-accumulates of the untiled run, which computes nothing twice.
        words: a description of the plan.
        spilled_bytes: the most bytes that files in `spill` hold at a time.
    """

    peak_bytes: int
    activation_bytes: int
    weight_bytes: int
    scratch_bytes: int
    picture_bytes: int
    reserve_bytes: int
    macs: int
    macs_whole: int
    words: str
    spilled_bytes: int = 0

    @property
    def macs_factor(self) -> float:
        """macs / macs_whole: 1.0 if nothing is computed twice."""
        return self.macs / self.macs_whole if self.macs_whole else 1.0

    def __str__(self) -> str:
        return (
            f"peak {show_bytes(self.peak_bytes)}, {self.macs / 1e9:,.3f} G MACs "
            f"({self.macs_factor:.3f} x whole), {self.words}"
        )

    def _parts(self) -> list[tuple[str, int, str]]:
        return [
            ("activations", self.activation_bytes, "#4c78a8"),
            ("packed weights", self.weight_bytes, "#f58518"),
            ("scratch", self.scratch_bytes, "#54a24b"),
            ("picture decoder", self.picture_bytes, "#b279a2"),
            ("reserve", self.reserve_bytes, "#9d9d9d"),
        ]

    def _repr_html_(self) -> str:
        """A bar of the peak's parts, and a table."""
        bar, rows, x = [], [], 0.0
        for name, n, colour in self._parts():
            if n == 0:
                continue
            width = 600.0 * n / max(self.peak_bytes, 1)
            bar.append(
                f'<rect x="{x:.2f}" y="0" width="{width:.2f}" height="18" fill="{colour}">'
                f"<title>{name}: {show_bytes(n)}</title></rect>"
            )
            rows.append(
                f'<tr><td style="color:{colour}">&#9632;</td><td style="text-align:left">{name}'
                f"</td><td>{show_bytes(n)}</td></tr>"
            )
            x += width
        return (
            f"<div>peak <b>{show_bytes(self.peak_bytes)}</b>, "
            f"{self.macs / 1e9:,.3f} G MACs ({self.macs_factor:.3f} &times; whole)<br>"
            f"{html.escape(self.words)}<br>"
            f'<svg width="600" height="18" role="img">{"".join(bar)}</svg>'
            f"<table>{''.join(rows)}</table></div>"
        )


def forecast_of(raw: _c.Forecast) -> Forecast:
    return Forecast(
        peak_bytes=raw.peak_bytes,
        activation_bytes=raw.activation_bytes,
        weight_bytes=raw.weight_bytes,
        scratch_bytes=raw.scratch_bytes,
        picture_bytes=raw.picture_bytes,
        reserve_bytes=raw.reserve_bytes,
        macs=raw.macs,
        macs_whole=raw.macs_whole,
        words=_c.text(raw.plan),
        spilled_bytes=raw.spilled_bytes,
    )
