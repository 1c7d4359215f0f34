"""`tapeproxy scrub`: write a tape anew without secrets, or say what on it still looks like one."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.leftover import closing_lines, listing
from tapeproxy.cli.redactoptions import given_redaction, redact_rule_options
from tapeproxy.cli.rendering import echo, printable, screen_of
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.proxy.scrubs import Checked, ScrubbedTape, Watch


@click.command(context_settings=HELP)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="CLEAN", help="The tape to write.")
@click.option("--in-place", is_flag=True, help="Replace the tape itself.")
@click.option("--force", is_flag=True, help="Replace CLEAN if it exists.")
@click.option("--check", is_flag=True, help="Change nothing: list what still looks like a secret.")
@redact_rule_options
@click.option("--secret-env", multiple=True, metavar="NAME", help="A variable whose value is a secret to look for.")
@click.option(
    "--secret-file", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="A secret on each line."
)
@click.option("--guesses", is_flag=True, help="Replace also what only looks random (--check calls it so).")
@click.option("--seal-seed", is_flag=True, help="Encrypt the random seed of the run: only you can replay with it.")
@click.option("--drop-seed", is_flag=True, help="Leave out the random seed of the run.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.argument("tapes", metavar="TAPE...", nargs=-1)
@click.pass_context
def command(
    ctx: click.Context,
    tapes: tuple[str, ...],
    output: Path | None,
    in_place: bool,
    force: bool,
    check: bool,
    secret_env: tuple[str, ...],
    secret_file: tuple[Path, ...],
    guesses: bool,
    seal_seed: bool,
    drop_seed: bool,
    as_json: bool,
) -> int:
    """Write a tape anew without secrets, or check it for them.

    \b
    tapeproxy scrub --check                                what still looks like a secret on the last tape
    tapeproxy scrub bug.tape.jsonl.gz -o clean.tape.jsonl.gz
    tapeproxy scrub TAPE -o CLEAN --redact-field session --secret-env MY_KEY

    Looked for are the names of headers, query parameters and fields that hold credentials, the shapes of well-known
    keys, and the values of this shell's secret variables: in every header and body with its compression, base64,
    percent-encoding, JSON in strings and the events of streams undone. Each secret is replaced by a token, wherever it
    stands. The clean tape replays as the old one did, has hashes of its own, and says in its head which tape it was
    made from. A tape with nothing to replace is copied.

    The random seed stays, for a replay needs it; whoever has it can compute every random value that the agent drew,
    tokens and keys that it made included. --seal-seed encrypts it with your redaction key: your own replays are as
    before, for everyone else it is not there. --drop-seed leaves it out. A replay without it runs without the shim,
    with the clock and randomness of its own, and a request that holds a random value or a time no longer matches.

    \b
    Exit codes: 0 nothing looks like a secret (any more)
                1 something does
                2 the tape to write exists, a rule can't be followed
                5 the tape can't be read or written

    --json with --check prints: tapes, a list of tape (its path), seeded (it holds the seed), redacted (false: recorded
    with --no-redact), unseen (what could not be looked into) and leftovers, a list of exchange (or null), record,
    place, kind (name, shape, known, rule, random), what and excerpt. Without --check: tape, output, sealed, seeded,
    same (nothing was replaced), records (how many were changed), recompressed (exchanges that lost chunk boundaries),
    replaced and left, lists of the same form.
    """
    from tapeproxy.proxy.scrubs import ScrubRules, ScrubSettings, Watch, scrub_tape

    rules = ScrubRules(redaction=given_redaction(ctx), secret_env=secret_env, secret_files=secret_file)
    paths = [choose_tape(name) for name in tapes or (None,)]
    if check:
        _refuse(output is not None or in_place or force or seal_seed or drop_seed or guesses, "--check changes nothing")
        return _check(paths, Watch(os.environ, rules), as_json=as_json)
    _refuse(seal_seed and drop_seed, "--seal-seed and --drop-seed say two different things")
    _refuse(len(paths) > 1, "one tape is scrubbed at a time")
    settings = ScrubSettings(
        tape=paths[0],
        output=_target(paths[0], output, in_place=in_place),
        environment=os.environ,
        rules=rules,
        force=force or in_place,
        seed="seal" if seal_seed else "drop" if drop_seed else "keep",
        guesses=guesses,
    )
    done = scrub_tape(settings)
    if as_json:
        click.echo(json.dumps(_scrubbed(settings.tape, done), indent=2))
    else:
        for line in closing_lines(done):
            echo(printable(line))
    return int(bool(done.scrubbed.left))


def _check(paths: list[Path], watch: "Watch", *, as_json: bool) -> int:
    from tapeproxy.proxy.scrubs import check_tape

    checked = [check_tape(path, watch) for path in paths]
    if as_json:
        click.echo(json.dumps({"tapes": [_checked(one) for one in checked]}, indent=2))
    else:
        for line in (line for one in checked for line in listing(one, screen_of(sys.stdout))):
            echo(line)
    return int(any(one.leftovers for one in checked))


def _target(tape: Path, output: Path | None, *, in_place: bool) -> Path:
    """The tape to write. Raises UsageError where none is named, or the one that is read, unasked."""
    _refuse(output is not None and in_place, "-o and --in-place say two different things")
    if output is None and not in_place:
        fix = f"tapeproxy scrub {shlex.quote(str(tape))} -o CLEAN, or --in-place"
        raise UsageError("there is no tape to write", fix=fix)
    if output is not None and output.exists() and tape.exists() and output.samefile(tape):
        raise UsageError("that is the tape itself", where=str(output), fix="to replace it, use --in-place")
    return output or tape


def _refuse(wrong: bool, what: str) -> None:
    if wrong:
        raise UsageError(what)


def _checked(checked: "Checked") -> dict[str, object]:
    return {
        "tape": str(checked.path),
        "seeded": checked.seeded,
        "redacted": checked.redacted,
        "unseen": checked.unseen,
        "leftovers": [one.to_json() for one in checked.leftovers],
    }


def _scrubbed(tape: Path, done: "ScrubbedTape") -> dict[str, object]:
    return {
        "tape": str(tape),
        "output": str(done.path),
        "sealed": done.sealed,
        "seeded": done.seeded,
        "same": done.same,
        "records": len(done.scrubbed.changed),
        "recompressed": done.scrubbed.recompressed,
        "replaced": [one.to_json() for one in done.scrubbed.found],
        "left": [one.to_json() for one in done.scrubbed.left],
    }
