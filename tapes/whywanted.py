"""Which texts of a request a question is about. Knows places in bodies, not where words come from."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.folding import Folded
from tapeproxy.tapes.jsonpaths import Step, parse_path
from tapeproxy.tapes.whysources import Leaf, request_leaves
from tapeproxy.tapes.whyspans import Wanted


class Asked(NamedTuple):
    """Characters `start` to `end` of a text of a request."""

    leaf: Leaf
    start: int
    end: int

    @property
    def text(self) -> str:
        """What is asked about."""
        return self.leaf.text[self.start : self.end]


def asked_texts(exchange: Exchange, wanted: Wanted, had: Collection[str]) -> Iterator[Asked]:
    """The texts that are asked about; without a path, those of the body and the URL that are not among `had`.

    Raises UsageError for a place or words that there are not.
    """
    leaves = request_leaves(exchange)
    if wanted.path is not None:
        leaves = _at(leaves, wanted.path, exchange.number)
    else:
        leaves = [one.leaf for one in fresh_texts(leaves, had)]
    if wanted.text is not None:
        yield from _with_text(leaves, wanted.text, exchange.number)
        return
    for leaf in leaves:
        start = min(wanted.start or 0, len(leaf.text))
        end = len(leaf.text) if wanted.end is None else min(wanted.end, len(leaf.text))
        if start < end:
            yield Asked(leaf, start, end)


def fresh_texts(leaves: Iterable[Leaf], had: Collection[str]) -> Iterator[Asked]:
    """The texts of a body and a URL that are not among `had`."""
    for leaf in leaves:
        if leaf.text and leaf.is_said and not leaf.is_structure and leaf.text not in had:
            yield Asked(leaf, 0, len(leaf.text))


def _at(leaves: Sequence[Leaf], path: str, number: int) -> list[Leaf]:
    """The texts at a place and below it. Raises UsageError where there is none."""
    path = path if path.startswith("$") else path.lower()
    if not path.startswith("$"):
        found = [leaf for leaf in leaves if leaf.place == path]
    else:
        try:
            steps = parse_path(path).steps
        except ValueError as error:
            raise UsageError(str(error)) from None
        if any(step.deep for step in steps):
            raise UsageError(f"{path} names no one place", fix="name it without .., as $.messages[3].content")
        found = [leaf for leaf in leaves if leaf.keys and _leads(steps, leaf)]
    if not found:
        near = get_close_matches(path, [leaf.place for leaf in leaves], n=3, cutoff=0.5)
        fix = f"did you mean: {', '.join(near)}" if near else "--path takes $.…, body, url or `header NAME`"
        raise UsageError(f"there is no text at {path} in the request of event {number}", fix=fix)
    return found


def _leads(steps: Sequence[Step], leaf: Leaf) -> bool:
    return len(steps) <= len(leaf.keys) and all(
        step.name is None or step.name == key for step, key in zip(steps, leaf.keys, strict=False)
    )


def _with_text(leaves: Sequence[Leaf], text: str, number: int) -> Iterator[Asked]:
    """Where a text stands, spaces aside; its first place in each text."""
    wanted = Folded(text).folded
    any_found = False
    for leaf in leaves:
        at = leaf.folded.folded.find(wanted) if wanted else -1
        if at >= 0:
            any_found = True
            yield Asked(leaf, *leaf.folded.span(at, at + len(wanted)))
    if not any_found:
        raise UsageError(
            f"the request of event {number} has no text {text!r} there", fix=f"see: tapeproxy show TAPE {number}"
        )
