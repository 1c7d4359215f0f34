"""Attributes that were replaced, and what they were: undone to the very objects. Knows nothing of what they do."""

from typing import Any

_MISSING = object()


class Journal:
    """Replaces attributes of classes and modules; `undo` gives all of them back."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute, and remember what the owner itself had there."""
        self._entries.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put everything back, the last first."""
        while self._entries:
            owner, name, before = self._entries.pop()
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
