"""`tapeproxy sign` and `tapeproxy keygen`: a word on a tape that nobody else can give."""

from pathlib import Path

import click

from tapeproxy.cli.choose import choose_tape, signature_path
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import echo, printable
from tapeproxy.cli.unlocking import Unlocking, has_terminal, prompt, unlock_options
from tapeproxy.tapes.errors import TapeFormatError

_PUBLIC = 0o644
_FILE = click.Path(path_type=Path, dir_okay=False)
_FORCE = click.option("--force", is_flag=True, help="Replace a file of that name.")


@click.command(context_settings=HELP)
@click.argument("tape", required=False)
@click.option("--key", required=True, type=_FILE, metavar="FILE", help="Your private key: Ed25519, PEM or OpenSSH.")
@click.option("-o", "--output", type=_FILE, metavar="FILE", help="Where the signature goes.  [default: TAPE.sig]")
@_FORCE
@unlock_options
def command(tape: str | None, key: Path, output: Path | None, force: bool, unlocking: Unlocking) -> None:
    """Sign a tape, so that nobody can make another in its place.

    \b
    tapeproxy keygen me.key                                   once: makes me.key and me.key.pub
    tapeproxy sign bug.tape.jsonl.gz --key me.key             makes bug.tape.jsonl.gz.sig
    tapeproxy verify bug.tape.jsonl.gz --key me.key.pub       whoever has the three files can check

    The tape is verified first; only a whole one is signed. It stays as it is, and the signature is a small file that
    goes with it: it signs every byte of the tape. Of an encrypted tape the plain content is signed, so one signature
    is good for both. A key of ssh-keygen -t ed25519 will do.
    """
    from tapeproxy.cli.verify import examine
    from tapeproxy.proxy.drafts import drafted
    from tapeproxy.proxy.signing import public_of, read_private, sign
    from tapeproxy.proxy.tapefile import started_at
    from tapeproxy.tapes.errors import Place
    from tapeproxy.tapes.signature import Statement, fingerprint

    path = choose_tape(tape)
    private = read_private(key, lambda: prompt(f"password of {key}").value if has_terminal() else None)
    verdict = examine(path, unlocking.ask)
    if not verdict.good:
        what = f"only a whole tape is signed, and this one is {verdict.finding.replace('-', ' ')}: {verdict.what}"
        raise TapeFormatError(what, place=Place(str(path), verdict.line), fix=verdict.fix)
    public = public_of(private)
    statement = Statement(
        file=verdict.file,
        head=verdict.head_hash,
        last=verdict.last_hash,
        records=verdict.records,
        signed_at=started_at(),
        key=public.hex(),
    )
    new = output or signature_path(path)
    with drafted(new, force=force, mode=_PUBLIC) as file:
        file.write(sign(statement, private))
    echo(f"signed by {fingerprint(public)}: {printable(str(new))}")


@click.command(context_settings=HELP)
@click.argument("file", type=_FILE)
@click.option("--encryption", is_flag=True, help="Make a key that encrypts tapes, for --key-file.")
@_FORCE
def keygen(file: Path, encryption: bool, force: bool) -> None:
    """Make a pair of keys that signs tapes, or a key that encrypts them.

    \b
    tapeproxy keygen me.key                   me.key signs: keep it. me.key.pub checks: give it away
    tapeproxy keygen --encryption tapes.key   whoever has it can read the tapes encrypted with it

    A pair is Ed25519 in PEM. The key for encryption is 32 random bytes in hex.
    """
    from tapeproxy.proxy.drafts import drafted

    if encryption:
        import secrets

        with drafted(file, force=force) as new:
            new.write(f"{secrets.token_hex(32)}\n".encode())
        echo(f"made {printable(str(file))}: without it nobody can read what it encrypts")
        return
    from tapeproxy.proxy.signing import new_pair, read_public
    from tapeproxy.tapes.signature import fingerprint

    private, public = new_pair()
    public_file = file.with_name(f"{file.name}.pub")
    with drafted(public_file, force=force, mode=_PUBLIC) as other, drafted(file, force=force) as new:
        other.write(public)
        new.write(private)
    echo(f"made {printable(str(file))} (keep it) and {printable(str(public_file))} (give it away)")
    echo(f"  {fingerprint(read_public(public_file))}")
