"""Exceptions: one for each error code of the C interface, with its text."""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, Any, Optional, Union

if TYPE_CHECKING:
    from ._forecast import Forecast


class Error(Exception):
    """The base of all exceptions of rfexec. `code` is the code of the C interface and the program's
    exit code."""

    code = 0


class UsageError(Error, ValueError):
    """An argument is wrong: out of its range, or an array of another shape or type."""

    code = 2


class RefusedError(Error, ValueError):
    """The model or image cannot be read, is broken, or is not supported."""

    code = 3


class BudgetError(MemoryError, Error):  # in this order, so that tblib can rebuild it in another process
    """No plan fits into `memory`.

    Attributes:
        needed_bytes: the smallest budget that would do; 0 if that is not known.
        forecast: from plan(): the Forecast of the run with the smallest peak; else None.
    """

    code = 4

    def __init__(self, text: str, forecast: Optional["Forecast"] = None) -> None:
        super().__init__(text)
        self.forecast = forecast
        needed = re.search(r"needs at least (\d+) bytes", text)
        self.needed_bytes = int(needed[1]) if needed else 0


class SystemFailure(Error, RuntimeError):
    """No memory or threads, reading or writing failed, or a bug of rfexec."""

    code = 5


class Cancelled(Error):
    """Network.cancel() stopped the run."""

    code = 6


class NotFound(FileNotFoundError, RefusedError):
    """The file does not exist; also a FileNotFoundError."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class IsFolder(IsADirectoryError, RefusedError):
    """A folder in place of a file; also an IsADirectoryError."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class NotAllowed(PermissionError, RefusedError):
    """No permission to read the file; also a PermissionError."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


_BY_CODE: dict[int, type[Error]] = {c.code: c for c in (UsageError, RefusedError, BudgetError, SystemFailure, Cancelled)}


# Members of C structs in error texts, and the arguments of this package that stand for them.
_WORDS = (
    (re.compile(r"give the size \(rows and columns\)"), "give size=(rows, columns)"),
    (re.compile(r"\bmemory_bytes\b"), "memory"),
    (re.compile(r"\bspill_folder\b"), "spill"),
    (re.compile(r"\bas_stored\b"), "orient=False"),
    (re.compile(r"\blow and high\b"), "range"),
)
# Reasons for which Python has an exception class of its own.
_FILES: tuple[tuple[int, type[OSError]], ...] = (
    (errno.ENOENT, NotFound),
    (errno.EISDIR, IsFolder),
    (errno.EACCES, NotAllowed),
)


def _reason_of(text: str, path: str) -> Optional[int]:
    """The errno of a file that cannot be read, if the text names this path; else None."""
    if path not in text or path.startswith("synthetic:"):
        return None
    if os.path.isdir(path):
        return errno.EISDIR
    return next((n for n, _ in _FILES if os.strerror(n) in text), None)


def error_of(code: int, text: str, path: Union[None, str, bytes] = None) -> Exception:
    """The exception for a code of the C library. path: the file that the call read."""
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
