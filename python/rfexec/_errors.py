"""What a call can fail with: one exception per code of the C interface, with its text."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, Any, Optional, Union

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
    """No way of running fits into `memory`. `needed_bytes` is the least that would do, 0 where that
    is not known. `forecast` is the run with the smallest peak, where plan() made it."""

    code = 4

    def __init__(self, text: str, forecast: Optional["Forecast"] = None) -> None:
        super().__init__(text)
        self.forecast = forecast
        needed = re.search(r"needs at least (\d+) bytes", text)
        self.needed_bytes = int(needed[1]) if needed else 0


class SystemFailure(Error, RuntimeError):
    """No memory or threads, reading failed, or a bug of rfexec's."""

    code = 5


class Cancelled(Error):
    """The run was stopped by Network.cancel()."""

    code = 6


class NotFound(FileNotFoundError, RefusedError):
    """There is no such file: also a FileNotFoundError."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class IsFolder(IsADirectoryError, RefusedError):
    """A folder in the place of a file: also an IsADirectoryError."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotAllowed(PermissionError, RefusedError):
    """A file that may not be read: also a PermissionError."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


_BY_CODE: dict[int, type[Error]] = {c.code: c for c in (UsageError, RefusedError, BudgetError, SystemFailure, Cancelled)}


# Members of the C structs that texts name, as arguments of this package.
_WORDS = (
    (re.compile(r"give the size \(rows and columns\)"), "give size=(rows, columns)"),
    (re.compile(r"\bmemory_bytes\b"), "memory"),
    (re.compile(r"\bspill_folder\b"), "spill"),
    (re.compile(r"\bas_stored\b"), "orient=False"),
)
# Reasons of a file that have a class of their own in Python.
_FILES: tuple[tuple[int, type[OSError]], ...] = (
    (errno.ENOENT, NotFound),
    (errno.EISDIR, IsFolder),
    (errno.EACCES, NotAllowed),
)


def _reason_of(text: str, path: str) -> Optional[int]:
    """Why a file cannot be read, where the text says so of this path."""
    if path not in text or path.startswith("synthetic:"):
        return None
    if os.path.isdir(path):
        return errno.EISDIR
    return next((n for n, _ in _FILES if os.strerror(n) in text), None)


def error_of(code: int, text: str, path: Union[None, str, bytes] = None) -> Exception:
    """The exception for a code of C. path: of the file that the call read."""
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    kind: type[Error] = _BY_CODE.get(code, SystemFailure)
    name = os.fsdecode(path) if path is not None else ""
    reason = _reason_of(text, name) if name and code in (2, 3, 5) else None
    if reason is None:
        return kind(text)
    failure = dict(_FILES)[reason](text)
    failure.errno, failure.filename = reason, name
    return failure
