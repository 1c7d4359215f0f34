"""`tapeproxy repair`: close a tape whose recording was interrupted."""

import os
from pathlib import Path

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import printable
from tapeproxy.tapes.errors import UsageError


@click.command(context_settings=HELP)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The tape to write.  [default: NAME-repaired]")
@click.option("--in-place", is_flag=True, help="Replace the tape itself, once the new one is whole.")
@click.option("--to-damage", is_flag=True, help="Of a damaged tape, keep what comes before the damage.")
@click.argument("tape", required=False)
def command(tape: str | None, output: Path | None, in_place: bool, to_damage: bool) -> int:
    """Close a tape whose recording was interrupted.

    \b
    tapeproxy repair bug.tape.jsonl.gz          makes bug-repaired.tape.jsonl.gz
    tapeproxy repair --in-place                 the last tape

    All whole lines are kept as they are, an unfinished one is dropped, and what the shim had written beside the tape
    (NAME.sidecar-...) is added. Nothing is invented: an exchange without an end stays one. A note on the tape says
    what was done, and the outcome in its seal is `repaired`. With --in-place the sidecar files are removed then.

    What the shim wrote about the agent's processes is left out, unless the secret variables of the run are set, because
    it could not be redacted. A damaged or edited tape is refused: what came after the damage can't be trusted.

    \b
    Exit codes: 0 repaired, or nothing to do: the tape has a seal
                2 the tape is still being written, or the output exists
                5 damaged (the message says up to where it is good), or the output can't be written
    """
    from tapeproxy.proxy.repairing import beside, repair

    if output is not None and in_place:
        raise UsageError("--output and --in-place are two places for one tape")
    path = choose_tape(tape)
    done = repair(path, path if in_place else output or beside(path), dict(os.environ), to_damage=to_damage)
    if not done.facts:
        click.echo(f"tapeproxy: nothing to do: {printable(str(path))} has a seal", err=True)
        return 0
    for fact in done.facts:
        click.echo(f"tapeproxy: {printable(fact)}", err=True)
    click.echo(f"tapeproxy: repaired: {printable(str(done.path))}", err=True)
    return 0
