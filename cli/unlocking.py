"""The options with which an encrypted tape is opened, and the prompt; knows a terminal, and no cipher."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.unlocking import Ask, Secret
    from tapeproxy.tapes.encrypted import Kind

_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option("--key-file", type=_FILE, metavar="FILE", help="The key of an encrypted tape."),
    click.option("--passphrase-fd", type=click.IntRange(0), metavar="N", help="Read its passphrase from descriptor N."),
    click.option("--passphrase-env", metavar="NAME", help="Take its passphrase from the variable NAME."),
)
_NAMES = ("key_file", "passphrase_fd", "passphrase_env")


class Unlocking:
    """Where the secret of a tape comes from: the options, the environment, or the user, who is asked once."""

    def __init__(self, key_file: Path | None, passphrase_fd: int | None, passphrase_env: str | None) -> None:
        """Raises UsageError when more than one is given, or what was given cannot be read."""
        given = {"--key-file": key_file, "--passphrase-fd": passphrase_fd, "--passphrase-env": passphrase_env}
        names = [name for name, value in given.items() if value is not None]
        if len(names) > 1:
            raise UsageError(f"{' and '.join(names)} exclude each other", fix="give one of them")
        self.named = names[0] if names else ""
        """The option that was given."""
        self._kept: Secret | None = None
        if self.named:
            self._kept = _given(key_file, passphrase_fd, passphrase_env)

    def ask(self, kind: "Kind", source: str) -> "Secret":
        """The secret for the tape `source`. Raises LockedTapeError when there is none, or one of another kind."""
        from tapeproxy.proxy.unlocking import environment_secret, refuse
        from tapeproxy.tapes.errors import LockedTapeError

        if self.named and self._kept is not None and self._kept.kind != kind:
            needed = "a key file" if kind == "key" else "a passphrase"
            fix = f"the tape was encrypted with {needed}"
            raise LockedTapeError(f"{self.named} does not open this tape", where=source, fix=fix)
        if self._kept is None or self._kept.kind != kind:
            found = environment_secret(kind, os.environ)
            if found is None and kind == "passphrase" and has_terminal():
                found = prompt(f"passphrase for {source}")
            self._kept = found or refuse(kind, source)
        return self._kept

    def asked_now(self, path: Path) -> "Ask":
        """Who opens encrypted tapes from here on: nobody is asked on a terminal any more, which a viewer has.

        So a tape that is named is opened now. Raises NoTapeError where there is none, and as `ask` does.
        """
        from tapeproxy.proxy.tapefile import is_locked, read_entries
        from tapeproxy.proxy.unlocking import ask_environment

        if not path.is_dir() and is_locked(path):
            next(read_entries(path, ask=self.ask), None)
            return self.ask
        return self.ask if self.named else ask_environment

    def choose(self) -> "Secret":
        """The secret to encrypt a tape with; a passphrase that is typed is asked for twice. Raises UsageError."""
        from tapeproxy.proxy.unlocking import environment_secret

        found = [self._kept] if self._kept else [environment_secret("passphrase", os.environ)]
        found += [] if self._kept else [environment_secret("key", os.environ)]
        secrets = [secret for secret in found if secret is not None]
        if len(secrets) > 1:
            raise UsageError("the environment names both a passphrase and a key file", fix="unset one of them")
        if secrets:
            return secrets[0]
        if not has_terminal():
            fix = "set TAPEPROXY_PASSPHRASE, or give --key-file FILE, --passphrase-fd N or --passphrase-env NAME"
            raise UsageError("there is nothing to encrypt the tape with, and no terminal to ask on", fix=fix)
        typed = prompt("passphrase")
        if prompt("the same again").value != typed.value:
            raise UsageError("the two passphrases differ", fix="try again")
        return typed


def unlock_options(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options; its function gets them as `unlocking`, an Unlocking."""

    @functools.wraps(callback)
    def gathered(*args: Any, **values: Any) -> Any:
        return callback(*args, unlocking=Unlocking(*(values.pop(name) for name in _NAMES)), **values)

    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), gathered)


def has_terminal() -> bool:
    """Whether there is a terminal to ask on: standard input may be something else."""
    if sys.platform == "win32":
        return sys.stdin.isatty()
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def prompt(what: str) -> "Secret":
    """Ask on the terminal, showing nothing of what is typed. Raises UsageError for an empty passphrase."""
    import getpass

    from tapeproxy.cli.rendering import printable
    from tapeproxy.proxy.unlocking import passphrase

    return passphrase(os.fsencode(getpass.getpass(f"{printable(what)}: ")), "the terminal")


def _given(key_file: Path | None, descriptor: int | None, variable: str | None) -> "Secret":
    from tapeproxy.proxy.unlocking import passphrase, read_descriptor, read_key

    if key_file is not None:
        return read_key(key_file)
    if descriptor is not None:
        return read_descriptor(descriptor)
    assert variable is not None
    # Taken out of our own environment: what we start must not see it.
    text = os.environ.pop(variable, None)
    if text is None:
        raise UsageError(f"the variable {variable} is not set", fix="it names the variable that holds the passphrase")
    return passphrase(os.fsencode(text), f"${variable}")
