"""How what looks like a secret on a tape is shown. Yields lines, prints none, and never the secret itself."""

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tapeproxy.cli.rendering import Screen, count, printable
from tapeproxy.tapes.errors import TapeproxyError

if TYPE_CHECKING:
    from pathlib import Path

    from tapeproxy.proxy.recorded import Recorded
    from tapeproxy.proxy.scrubs import Checked, ScrubbedTape
    from tapeproxy.tapes.leftovers import Leftover
    from tapeproxy.tapes.redactionrules import RedactionRules

_LARGE = 50 << 20
"""Bytes of a tape's file that are not looked through when a recording ends."""
_PATIENCE = 2.0
_SHOWN = 5
"""Places of one secret that are listed."""


def listing(checked: "Checked", screen: Screen) -> Iterator[str]:
    """The findings on a tape, a paragraph a secret, and what else is to be known."""
    path = printable(str(checked.path))
    groups = grouped(checked.leftovers)
    if groups:
        yield f"{path}: {count(len(groups), 'value')} that {'look' if len(groups) > 1 else 'looks'} like a secret"
    else:
        yield f"{path}: nothing looks like a secret"
    for found in groups:
        first = found[0]
        yield f"  {screen.paint(first.kind, 'yellow')}  {printable(first.what)}: {printable(first.excerpt)}"
        yield from (f"    {printable(_place(one))}" for one in found[:_SHOWN])
        if len(found) > _SHOWN:
            yield f"    and in {count(len(found) - _SHOWN, 'more place')}; --json lists them all"
    if not checked.redacted:
        yield "  note: it was recorded with --no-redact"
    yield from (f"  note: {printable(why)}" for why in checked.unseen[:_SHOWN])
    if checked.seeded:
        yield "  note: it holds the random seed of its run, from which every random value of the agent can be computed;"
        yield "        scrub --seal-seed keeps it for your own replays, --drop-seed leaves it out"


def after_recording(recorded: "Recorded", environment: Mapping[str, str], rules: "RedactionRules") -> Iterator[str]:
    """One line when a tape that was just made, redacted by `rules`, still has what looks like a secret; else none.

    It is looked at for a few seconds at most. Raises nothing: the run is over, and its tape is there.
    """
    yield from suspicious(recorded.path, environment, rules)


def suspicious(path: "Path", environment: Mapping[str, str], rules: "RedactionRules | None" = None) -> Iterator[str]:
    """The same of any tape. `rules`: more than the usual ones."""
    from tapeproxy.proxy.scrubs import ScrubRules, Watch, check_tape

    see = f"tapeproxy scrub --check {shlex.quote(str(path))}"
    if path.is_file() and path.stat().st_size > _LARGE:
        yield f"the tape was not looked through for secrets, for its size; do it with: {see}"
        return
    try:
        sought = ScrubRules() if rules is None else ScrubRules(redaction=rules)
        checked = check_tape(path, Watch(environment, sought), seconds=_PATIENCE)
    except TapeproxyError as error:
        yield f"the tape could not be looked through for secrets: {printable(error.what)}"
        return
    if groups := grouped(checked.leftovers):
        where = "on the tape" if checked.whole else "in what was looked through of the tape"
        look = "looks like a secret" if len(groups) == 1 else "look like secrets"
        yield f"warning: {count(len(groups), 'value')} {where} still {look}; see: {see}"
    elif not checked.whole:
        yield f"not all of the tape was looked through for secrets, for its size; do it with: {see}"


def closing_lines(done: "ScrubbedTape") -> Iterator[str]:
    """What became of a tape that was scrubbed."""
    scrubbed = done.scrubbed
    replaced = len(grouped(scrubbed.found))
    if done.same:
        yield f"nothing to replace; copied to {done.path}"
    else:
        yield f"replaced {count(replaced, 'secret')} in {count(len(scrubbed.changed), 'record')}: {done.path}"
    if not done.sealed:
        yield "the tape has no seal: it was interrupted, and so is this one"
    if scrubbed.recompressed:
        bodies = "compressed bodies" if len(scrubbed.recompressed) > 1 else "compressed body"
        yield f"{len(scrubbed.recompressed)} {bodies} lost the boundaries of chunks"
    if scrubbed.left:
        left = count(len(grouped(scrubbed.left)), "value")
        yield f"{left} may still be a secret, see: tapeproxy scrub --check {shlex.quote(str(done.path))}"


def grouped(found: "list[Leftover]") -> "list[list[Leftover]]":
    """Findings of one value together, in the order of the first."""
    groups: dict[bytes, list[Leftover]] = {}
    for one in found:
        groups.setdefault(one.value, []).append(one)
    return list(groups.values())


def _place(one: "Leftover") -> str:
    return f"exchange {one.exchange}, {one.place}" if one.exchange is not None else one.place
