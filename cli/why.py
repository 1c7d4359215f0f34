"""`tapeproxy why`: which answer, tool result or file the words of a request come from."""

import sys

import click

from tapeproxy.cli.choose import choose_tape
from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import echo, screen_of
from tapeproxy.cli.unlocking import Unlocking, unlock_options


@click.command(context_settings=HELP)
@click.option("--event", type=int, required=True, metavar="N", help="The exchange whose request it is, as in `show`.")
@click.option("--path", metavar="PATH", help="Where in it: $.messages[3].content, body, url or `header NAME`.")
@click.option("--text", metavar="STRING", help="These words, wherever in it (or at PATH) they stand.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.argument("tape", required=False)
@unlock_options
def command(
    tape: str | None, event: int, path: str | None, text: str | None, as_json: bool, unlocking: Unlocking
) -> None:
    """Show where the words of a request come from: answers, tools, files, or the agent itself.

    \b
    tapeproxy why TAPE --event 7                               what the call before did not have
    tapeproxy why TAPE --event 7 --path '$.messages[3].content'
    tapeproxy why TAPE --event 7 --text 'the moon is made of'  where that came from

    Each text is shown with its parts in brackets, numbered; below it stands what each part comes from: an answer of an
    earlier event, put together where it was a stream; a value that was read past the wire (a tool, a file, standard
    input, a program's output); an id that a lane drew, a time that it read; the command line. Lines with an arrow go on
    from there: what that answer had been asked, and where that came from. What comes from nowhere are the agent's own
    words. Only what happened before the request counts (docs/CAUSALITY.md); `or` names what else has the same words.
    See docs/WHY.md.

    --json prints: event, previous (the call before, or null), fresh (only what that did not have), whole (false: not
    all was looked for) and texts: place, text, spans. A span has start, end (characters of the text), text, since
    (the first of the requests in a row that has it) and source: null, or kind (answer, value, clock, chance, argv,
    cwd), path, words, start, end, around (the source's text before it, itself, behind it), with event for an answer,
    lane and n for clock and chance, and lane, n, what, name, where for a value. It also has others (sources as well)
    and came: spans of the source's own text, with asked_in (event, path) where an answer repeats its request.
    Of the agent's own words looks_like says what they look like: uuid, timestamp, … or null.
    """
    from tapeproxy.proxy.tapefile import load
    from tapeproxy.tapes.why import Provenance
    from tapeproxy.tapes.whyspans import Wanted

    found, _ = load(choose_tape(tape), unlocking.ask)
    why = Provenance(found).why(event, Wanted(path, text))
    if as_json:
        from tapeproxy.cli.documents import dump
        from tapeproxy.tapes.whydocuments import why_document

        click.echo(dump(why_document(why)))
        return
    from tapeproxy.cli.whypage import why_page

    for line in why_page(why, screen_of(sys.stdout)):
        echo(line)
