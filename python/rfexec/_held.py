"""Objects that hold memory of the C library."""

from __future__ import annotations

from typing import Any, TypeVar

_Self = TypeVar("_Self", bound="Held")


class Held:
    """A context manager whose close() frees memory of the C library. It cannot be copied or pickled."""

    _instead = "open it again where it is needed"  # what to do where a copy is wanted

    def close(self) -> None:
        """Frees the memory."""
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"a rfexec.{type(self).__name__} cannot be copied or pickled: it holds memory of the C "
            f"library; {self._instead}"
        )
