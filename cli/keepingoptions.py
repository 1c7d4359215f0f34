"""How a tape is kept while it is recorded: the options for what happens when it can't be, for the disk and a cipher."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.unlocking import Secret

STOPPED = 6
"""The exit code of a run that --strict-tape ended."""
_OPTIONS = (
    click.option("--strict-tape", is_flag=True, help="Stop the agent when the tape can't be written whole."),
    click.option("--fsync", is_flag=True, help="Have the disk confirm each chunk before the agent gets it (slow)."),
    click.option("--encrypt", is_flag=True, help="Encrypt the tape from its first byte on, as `encrypt` does."),
    unlock_options,
)
_NAMES = ("strict_tape", "fsync", "encrypt")


@dataclass(frozen=True, slots=True)
class KeepingOptions:
    """What was said of it. `unlocking`: where the secret of an encrypted tape comes from."""

    strict: bool
    fsync: bool
    encrypt: bool
    unlocking: Unlocking

    @property
    def given(self) -> bool:
        """Whether anything was said that is for recording."""
        return self.strict or self.fsync or self.encrypt

    def secret(self) -> "Secret | None":
        """What the tape is encrypted with, if it is to be: asks for it. Raises UsageError."""
        if self.encrypt:
            return self.unlocking.choose()
        if named := self.unlocking.named:
            raise UsageError(f"{named} is for a tape that is encrypted", fix="add --encrypt, or leave it out")
        return None


def keeping_options(callback: Callable[..., int]) -> Callable[..., int]:
    """Give a command these options; its function gets them as `keeping`, a KeepingOptions."""

    @functools.wraps(callback)
    def gathered(*args: Any, unlocking: Unlocking, **values: Any) -> int:
        strict, fsync, encrypt = [values.pop(name) for name in _NAMES]
        return callback(*args, keeping=KeepingOptions(strict, fsync, encrypt, unlocking), **values)

    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), gathered)
