"""To come."""

from __future__ import annotations


def install() -> None:
    """Do nothing yet."""
