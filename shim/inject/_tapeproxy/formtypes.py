"""Types, by what a tape calls them: `module:qualname`. Only looks for them in modules that are loaded."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATHS = ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath", "Path", "PurePath")
"""The types of pathlib."""


def type_name(kind: type) -> str:
    """How a type is called on a tape."""
    return f"{kind.__module__}:{kind.__qualname__}"


def find_type(name: Any) -> Any:
    """The type of this name in a module that is loaded; None where there is none."""
    module, _, path = str(name).partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def is_model(kind: Any) -> bool:
    """Whether a type is a model of pydantic."""
    return hasattr(kind, "__pydantic_validator__") and hasattr(kind, "model_dump_json")
