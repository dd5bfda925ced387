"""Steps of a run, for observers."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import _c
from ._call import Call
from ._errors import UsageError

WORKS = ("read", "compute", "sum", "keep", "write", "spill", "fetch", "pack")


class Step(NamedTuple):
    """A step of a run that has just ended; struct rfx_step_report of the C header.

    Attributes:
        stage, n_stages: the number of the stage, from 0, and their count; Network.stages() lists them.
        work: "read" a rectangle of the image; "compute" a rectangle of the layer's feature map; "sum" a
            rectangle into a global operator's sums; "keep" rows for the next step; "write" a rectangle
            of an output; "spill" rows to a file or "fetch" them; "pack" the layer's weights.
        layer: the layer's number in Network.analyze(); for a group, that of its last layer.
        name: the layer's name.
        output: the output's name if the rectangle is now final, else None. The final rectangles cover
            the output.
        step: the number of the step, from 1.
        done, total: as in `progress`.
        row, column, rows, columns, channels: the rectangle, in pixels.
        planned_bytes: the plan's peak.
        held_bytes: bytes that the network has allocated now.
        seconds: since the first step began.
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
    """Makes a call report its steps to an observer, if there is one."""
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
