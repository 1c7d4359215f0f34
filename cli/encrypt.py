"""`tapeproxy encrypt` and `tapeproxy decrypt`: a tape that only its key or passphrase opens."""

from collections.abc import Iterator
from pathlib import Path

import click

from tapeproxy.cli.choose import LOCKED_SUFFIX, choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import echo, printable, size
from tapeproxy.cli.unlocking import Unlocking, unlock_options
from tapeproxy.tapes.errors import UsageError

_OUT = click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="What to call the new one.")
_FORCE = click.option("--force", is_flag=True, help="Replace a file of that name.")


@click.command(context_settings=HELP)
@click.argument("tape", required=False)
@_OUT
@_FORCE
@unlock_options
def command(tape: str | None, output: Path | None, force: bool, unlocking: Unlocking) -> None:
    """Encrypt a tape with a passphrase or a key file.

    \b
    tapeproxy encrypt bug.tape.jsonl.gz                       asks for a passphrase
    tapeproxy encrypt --key-file tapes.key                    the last tape
    tapeproxy replay bug.tape.jsonl.gz.enc

    The new file is called as the tape, with .enc; the tape itself stays, remove it when you want it gone. Every
    command that reads tapes reads an encrypted one in memory, and finds any change to it. The passphrase is asked for
    on the terminal, or comes from --passphrase-fd, --passphrase-env, or the variables TAPEPROXY_PASSPHRASE or
    TAPEPROXY_PASSPHRASE_FILE; the key file from --key-file or TAPEPROXY_KEY_FILE. No agent sees these variables. Nobody
    can open the tape without the secret: keep it.

    AES-256-GCM; the key is made of a passphrase by scrypt, with 128 MiB (docs/FORMAT.md).
    """
    from tapeproxy.proxy.encrypting import encrypt
    from tapeproxy.proxy.tapefile import is_being_written, is_locked, read_entries, read_pieces

    path = choose_tape(tape)
    if is_locked(path):
        raise UsageError("the tape is encrypted already", where=str(path), fix="`tapeproxy decrypt` first")
    next(read_entries(path))
    if is_being_written(path):
        raise UsageError("the tape is being recorded", where=str(path), fix="wait until its recorder has ended")
    new = output or path.with_name(path.name + LOCKED_SUFFIX)
    _write(encrypt(read_pieces(path), unlocking.choose()), new, force=force)
    echo(f"encrypted: {printable(str(new))} ({size(new.stat().st_size)})")
    echo(f"  the plain tape is still there: {printable(str(path))}")


@click.command(context_settings=HELP)
@click.argument("tape", required=False)
@_OUT
@_FORCE
@unlock_options
def decrypt(tape: str | None, output: Path | None, force: bool, unlocking: Unlocking) -> None:
    """Make a plain tape of an encrypted one.

    It is, byte for byte, the one that was encrypted. Nothing is there before all of it is checked. replay, show and
    verify need no plain tape.
    """
    from tapeproxy.proxy.encrypting import decrypt
    from tapeproxy.proxy.tapefile import is_locked, read_pieces

    path = choose_tape(tape)
    if not is_locked(path):
        raise UsageError("the tape is not encrypted", where=str(path))
    new = output or path.with_name(path.name.removesuffix(LOCKED_SUFFIX))
    if new == path:
        raise UsageError(f"its name does not end in {LOCKED_SUFFIX}", where=str(path), fix="name the new one with -o")
    _write(decrypt(read_pieces(path), str(path), unlocking.ask), new, force=force)
    echo(f"decrypted: {printable(str(new))} ({size(new.stat().st_size)})")


def _write(pieces: Iterator[bytes], path: Path, *, force: bool) -> None:
    from tapeproxy.proxy.drafts import drafted

    with drafted(path, force=force) as file:
        for piece in pieces:
            file.write(piece)
