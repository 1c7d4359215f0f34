"""What a tape says of the run that it holds: its command, seed, secrets and time; what of that a replay may use."""

import socket
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from tapeproxy.proxy.origin import is_ours
from tapeproxy.proxy.redactionkey import load_key
from tapeproxy.proxy.replayed import ReplaySettings
from tapeproxy.tapes.branches import environment_of
from tapeproxy.tapes.errors import Place, TapeFormatError, UsageError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.machine import Facts, facts_of
from tapeproxy.tapes.positions import is_within
from tapeproxy.tapes.records import Head
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.redactionrules import RedactionRules
from tapeproxy.tapes.secretvars import is_secret_name, secret_values
from tapeproxy.tapes.tokens import placeholder

_MOST_PLACEHOLDERS = 256
_REDACTORS = 4
"""That are kept for the next tape: a run of tests opens hundreds, whose rules are the same."""
_WITHIN = "the tape was recorded within an interpreter: clock and randomness are the agent's own, not the tape's"
_YEARS = (2001, 2048)


def with_seed(head: Head, *, within: bool = False) -> tuple[Head, list[str]]:
    """The head with its seed out of the box, if it is sealed; and a note where a tape has none for us.

    `within`: it is for an interpreter that hears the tape from within, as it was recorded; others have no use for it.
    """
    if is_within(head) and not within:
        return replace(head, seed=None), [_WITHIN] if head.seed is not None else []
    if head.scrubbed is None or head.seed is not None or head.origin is None:
        return head, []
    why = "was left out when it was scrubbed"
    if head.sealed_seed is not None:
        from tapeproxy.proxy.seedbox import opened

        head, why = opened(head, load_key()), "was sealed with another key"
    lost = f"the tape's seed {why}: the agent's clock and randomness are its own, not the tape's"
    return head, [] if head.seed is not None else [lost]


def taped_redactor(tape: Tape, settings: ReplaySettings) -> Redactor:
    """Redacts as the recording did: what stands for an absent secret may be encoded, as the secret was."""
    try:
        rules = RedactionRules.from_json(tape.head.rules)
    except ValueError as error:
        raise TapeFormatError(str(error), place=Place(str(settings.tape))) from None
    absent = (name for name in placeholders(tape) if not settings.environment.get(name))
    secrets = (*secret_values(settings.environment), *map(placeholder, absent))
    if tape.head.scrubbed is None:
        return _redactor(load_key(), secrets, rules)
    from tapeproxy.tapes.blanks import ScrubbedRedactor, blanks_of

    return ScrubbedRedactor(load_key(), secrets, rules, blanks_of(tape))


@lru_cache(_REDACTORS)
def _redactor(key: bytes, secrets: tuple[str, ...], rules: RedactionRules) -> Redactor:
    """One for all tapes with the same rules: it takes a millisecond to make, and remembers headers and URLs."""
    return Redactor(key, secrets, rules)


def placeholders(tape: Tape) -> Iterator[str]:
    """The variables that get a placeholder. A tape may come from a stranger: only such as usually hold a secret."""
    return filter(is_secret_name, tape.head.secrets[:_MOST_PLACEHOLDERS])


def facts_here(tape: Tape, settings: ReplaySettings) -> Facts:
    """The facts of this machine, as far as they stand in the tape's requests."""
    wanted = facts_of(tape.head, tape.notes, whole=tape.seal is not None)
    if not wanted:
        return {}
    from tapeproxy.proxy.machine import machine_facts

    tmpdir = tape.head.tmpdir if settings.shim and tape.head.seed is not None else None
    return machine_facts(settings.environment, str(Path.cwd()), tmpdir, wanted=wanted)


def edited_environment(head: Head, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of the user, with what a fork changed in it for this tape: only on a tape of this machine's."""
    told = environment_of(head)
    out = dict(environment)
    if told and is_ours(head, load_key(), socket.gethostname()):
        for name, value in told.items():
            out.pop(name, None)
            if value is not None:
                out[name] = value
    return out


def taped_argv(tape: Tape, path: Path) -> tuple[str, ...]:
    """The command on the tape at `path`, if the tape is this machine's own. Raises UsageError."""
    import shlex

    head, again = tape.head, f"tapeproxy replay {shlex.quote(str(path))}"
    if not head.argv:
        raise UsageError("the tape holds no command to run", where=str(path), fix=f"give one: {again} -- COMMAND")
    if not is_ours(head, load_key(), socket.gethostname()):
        raise UsageError(
            "the tape was recorded elsewhere, so its command is not run unasked",
            where=str(path),
            fix=f"to run it: {again} -- {shlex.join(head.argv)}",
        )
    return head.argv


def began_at(tape: Tape) -> datetime:
    try:
        began = datetime.fromisoformat(tape.head.started_at)
    except ValueError:
        return datetime.now(UTC)
    # Certificates can't be made for just any time, and a tape may say anything.
    if not _YEARS[0] <= began.year <= _YEARS[1]:
        return datetime.now(UTC)
    return began if began.tzinfo else began.replace(tzinfo=UTC)
