"""Steps of a run, as an observer is told of them."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import _c
from ._call import Call
from ._errors import UsageError

WORKS = ("read", "compute", "sum", "keep", "write", "spill", "fetch", "pack")


class Step(NamedTuple):
    """A step of a run that has just been done; the C header's struct rfx_step_report.

    stage: of n_stages, from 0; Network.stages() describes them. work: "read" a rectangle of the
    image, "compute" one of the layer's map, "sum" one of the map before it into its sums, "keep",
    "spill" or "fetch" rows, "write" a rectangle of an output, "pack" the layer's weights. layer:
    its number in Network.analyze(), of several that one step computes the last; name: its name.
    output: the name of the output of which the rectangle has become final, else None; final
    rectangles make an output up. step: from 1. done, total: as progress was told. row, column,
    rows, columns, channels: the rectangle. planned_bytes: the plan's peak; held_bytes: what the
    network has allocated now. seconds: since the first step began.
    """

    stage: int
    n_stages: int
    work: str
    layer: int
    name: str
    output: Optional[str]
    step: int
    done: int
    total: int
    row: int
    column: int
    rows: int
    columns: int
    channels: int
    planned_bytes: int
    held_bytes: int
    seconds: float


def observe(call: Call, observer: Any, outputs: Sequence[Any]) -> None:
    """Has a call tell an observer, if there is one."""
    if observer is None:
        return
    if not callable(observer):
        raise UsageError(f"observer is {observer!r}: a function of a Step")
    tell: Callable[[Step], Any] = observer

    def take(raw: _c.StepReport) -> None:
        tell(
            Step(
                raw.stage,
                raw.n_stages,
                WORKS[raw.work],
                raw.layer,
                _c.text(raw.name),
                outputs[raw.output].name if raw.output >= 0 else None,
                raw.step,
                raw.done,
                raw.total,
                raw.row,
                raw.column,
                raw.rows,
                raw.columns,
                raw.channels,
                raw.planned_bytes,
                raw.held_bytes,
                raw.seconds,
            )
        )

    call.set_observe(take)
