"""Numbers and names for C, and numbers of bytes as the program's --memory takes them."""

from __future__ import annotations

import operator
import os
import re
from typing import Any, Optional, Union

from ._errors import UsageError

_PATTERN = re.compile(r"([0-9]*)(?:\.([0-9]*))? *([A-Za-z]*)", re.ASCII)
_MOST = 2**63 - 1


def c_number(value: Any, what: str, bits: int = 64) -> int:
    """A number as a signed integer of C. Raises UsageError if it does not fit; ctypes would truncate it."""
    try:
        n = operator.index(value)
    except TypeError:
        n = None
    if n is None or not -(2 ** (bits - 1)) <= n < 2 ** (bits - 1):
        raise UsageError(f"{what} is {value!r}: a whole number of at most {bits} bits")
    return n


def c_name(name: Union[str, bytes, os.PathLike[str]], what: str) -> bytes:
    """A file name in the encoding of the file system. Raises UsageError for a NUL, at which C would
    end it."""
    data = os.fsencode(name)
    if b"\0" in data:
        raise UsageError(f"{what} is {os.fspath(name)!r}: a name has no NUL in it")
    return data


def _unit_bytes(unit: str) -> int:
    """The bytes of a unit: "M" and "MiB" are binary, "MB" is decimal; 0: unknown."""
    if unit in ("", "b"):
        return 1
    power = "kmgt".find(unit[0]) + 1
    if power == 0 or unit[1:] not in ("", "b", "ib"):
        return 0
    return int((1000 if unit[1:] == "b" else 1024) ** power)


def parse_bytes(memory: Union[None, int, str]) -> int:
    """The bytes of None (0: no limit), a positive integer, or a text such as "64MiB" or "1.5GiB"."""
    if memory is None:
        return 0
    if isinstance(memory, str):
        match = _PATTERN.fullmatch(memory)
        if match and (match[1] or match[2]):
            unit = _unit_bytes(match[3].lower())
            digits = (match[2] or "")[:6]  # a millionth of a unit, as the program
            n = int(match[1] or "0") * unit
            n += int(int(digits or "0") * unit // 10 ** len(digits))
            if 0 < n <= _MOST:
                return n
    elif not isinstance(memory, bool):
        try:
            n = int(operator.index(memory))
        except TypeError:
            n = 0
        if 0 < n <= _MOST:
            return n
    raise UsageError(
        f"memory is {memory!r}: a positive number of bytes such as '64MiB', '1.5GiB', 67108864, "
        "or None for no limit"
    )


def parse_size(size: Optional[tuple[int, int]]) -> tuple[int, int]:
    """(rows, columns); (0, 0) for None."""
    if size is None:
        return 0, 0
    try:
        rows, columns = (n.__index__() for n in size)
    except (AttributeError, TypeError, ValueError):
        raise UsageError(f"size is {size!r}: (rows, columns), or None for the model's own") from None
    if not (0 < rows < 2**62 and 0 < columns < 2**62):
        raise UsageError(f"size is {size!r}: rows and columns must be positive")
    return rows, columns
