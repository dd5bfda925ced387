"""What a call can fail with: one exception per code of the C interface, with its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._forecast import Forecast


class Error(Exception):
    """Everything that rfexec raises. `code` is the C interface's (and the program's exit) code."""

    code = 0


class UsageError(Error, ValueError):
    """The caller's mistake: an argument out of its range, an array of another shape or type."""

    code = 2


class RefusedError(Error, ValueError):
    """The model or picture cannot be read, is broken, or is not supported."""

    code = 3


class BudgetError(MemoryError, Error):  # in this order, or tblib cannot make one in another process
    """No way of running fits into `memory`. `forecast` is the run with the smallest peak, where it
    is known."""

    code = 4

    def __init__(self, text: str, forecast: Optional["Forecast"] = None) -> None:
        super().__init__(text)
        self.forecast = forecast


class SystemFailure(Error, RuntimeError):
    """No memory or threads, reading failed, or a bug of rfexec's."""

    code = 5


class Cancelled(Error):
    """The run was stopped by Network.cancel()."""

    code = 6


_BY_CODE = {c.code: c for c in (UsageError, RefusedError, BudgetError, SystemFailure, Cancelled)}


def error_of(code: int, text: str) -> Error:
    return _BY_CODE.get(code, SystemFailure)(text)
