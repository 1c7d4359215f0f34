"""What a CI's page says of replays: Markdown and annotations. Yields text, prints none.

Whatever stands in a report is code in the Markdown, so that no markup, mention or link of it is taken for ours. Lines
that a runner of GitHub would take for a command are made none: it reads all that a step prints.
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tapeproxy.cli.rendering import count, duration, printable
from tapeproxy.tapes.cireports import Entry
from tapeproxy.tapes.markdowntext import code, fenced
from tapeproxy.tapes.usage import Usage, summed

MOST_BYTES = 900_000
"""A page of GitHub takes a MiB of a step."""
_MOST_ROWS = 500
_OPEN_ROWS = 20
"""Rows of what passed that are shown unasked."""
_LONGEST = 8_000
"""Characters of what is told of one entry."""
_LONGEST_WHY = 200
_ANNOTATIONS = 10
"""GitHub shows as many of a step."""
_KEPT = 10
_COMMAND = re.compile(r"^(\s*):(?=:)", re.M)


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, of the models whose name fits the glob.

    `cached` and `written`: those that were read from the provider's cache, or written to it; None: as others.
    """

    model: str
    tokens_in: float
    tokens_out: float
    cached: float | None = None
    written: float | None = None

    def of(self, usage: Usage) -> float:
        """What those calls cost."""
        kinds = ((usage.tokens_cached, self.cached), (usage.tokens_written, self.written))
        apart = [(count, price) for count, price in kinds if price is not None]
        plain = max(0, usage.tokens_in - sum(count for count, _ in apart))
        cached = sum(count * price for count, price in apart)
        return (plain * self.tokens_in + cached + usage.tokens_out * self.tokens_out) / 1e6

    def unpriced(self, usage: Usage) -> int:
        """How many of the tokens have another price that is not given."""
        kinds = ((usage.tokens_cached, self.cached), (usage.tokens_written, self.written))
        return sum(count for count, price in kinds if price is None)


@dataclass(frozen=True, slots=True)
class _Bill:
    """What calls cost; `unpriced` models have no price, `plain` cached tokens were counted at the price of others."""

    money: float
    unpriced: list[str]
    plain: int


def markdown(entries: Sequence[Entry], prices: Sequence[Price] = ()) -> str:
    """The summary, at most `MOST_BYTES` of it."""
    failed = [one for one in entries if one.code]
    passed = [one for one in entries if not one.code]
    if not entries:
        return "## Tapes\n\nNothing was replayed.\n"
    kept = [f"## Tapes: {len(passed)} passed" + (f", **{len(failed)} failed**" if failed else "")]
    kept.append("\n".join((*_table(failed), "")) if failed else "")
    size = sum(map(_size, kept))
    left_out = 0
    for block in map(_details, failed):
        if size + _size(block) > MOST_BYTES // 2:
            left_out += 1
        else:
            kept.append(block)
            size += _size(block)
    kept += [f"What is told of {left_out} more is left out for its size."] if left_out else []
    if passed:
        table = "\n".join(_table(passed))
        opened = len(passed) <= _OPEN_ROWS
        kept.append(table if opened else f"<details><summary>{len(passed)} passed</summary>\n\n{table}\n\n</details>")
    kept += ["\n".join(saved_lines(entries, prices))]
    return "\n\n".join(block.rstrip("\n") for block in kept if block) + "\n"


def annotations(entries: Sequence[Entry], folder: str = "") -> Iterator[str]:
    """Commands to GitHub's runner that show what failed beside the code. `folder`: of the files, in the repository."""
    failed = [one for one in entries if one.code]
    for one in failed[:_ANNOTATIONS]:
        told = "\n".join(printable(line) for line in one.told[0].text.split("\n")) if one.told else ""
        message = f"{printable(one.why)}\n{told[:_LONGEST]}".strip()
        title = printable(f"tapeproxy: {one.name}")[:_LONGEST_WHY]
        yield f"::error file={_property(folder + printable(one.file))},title={_property(title)}::{_data(message)}"
    if len(failed) > _ANNOTATIONS:
        yield f"::notice title=tapeproxy::{len(failed) - _ANNOTATIONS} more failed; the summary has them"


def saved(entries: Sequence[Entry], prices: Sequence[Price]) -> dict[str, object]:
    """What the replays saved, for JSON. `money` is null without prices."""
    usage = summed(usage for one in entries for usage in one.usage)
    bill = _bill(usage, prices)
    return {
        "waited_ns": sum(one.waited_ns for one in entries),
        "took_ns": sum(one.took_ns for one in entries),
        "usage": [one.to_json() for one in usage],
        "money": bill.money if prices else None,
        "unpriced": bill.unpriced if prices else [],
        "cached_at_full_price": bill.plain if prices else 0,
    }


def saved_lines(entries: Sequence[Entry], prices: Sequence[Price]) -> Iterator[str]:
    """The same for people."""
    waited, took = (sum(getattr(one, name) for one in entries) for name in ("waited_ns", "took_ns"))
    yield f"Time: {duration(took)}; what was answered from tapes had taken {duration(waited)} when it was recorded."
    usage = summed(usage for one in entries for usage in one.usage)
    if not usage:
        return
    names = ("calls", "tokens_in", "tokens_cached", "tokens_written", "tokens_out", "uncounted")
    calls, tokens_in, cached, written, tokens_out, uncounted = (
        sum(getattr(one, name) for one in usage) for name in names
    )
    unsaid = f"; {uncounted} of them do not say all of theirs" if uncounted else ""
    kinds = ((cached, "read from a cache"), (written, "written to one"))
    told = [f"{number:,} {what}" for number, what in kinds if number]
    among = f" ({', '.join(told)})" if told else ""
    tokens = f"{tokens_in:,} tokens in{among} and {tokens_out:,} out"
    yield f"Not asked of models again: {count(calls, 'call')}, {tokens}{unsaid}."
    if prices:
        bill = _bill(usage, prices)
        yield f"That is {bill.money:.4f} at the prices given."
        if bill.plain:
            yield (
                f"It is rough: {bill.plain:,} of the tokens were read from a cache or written to one, and count as "
                "others without a price for that (MODEL=IN,OUT,CACHED,WRITTEN)."
            )
        if bill.unpriced:
            yield f"No price was given for {', '.join(_inert(code(model)) for model in bill.unpriced)}."
    if len(usage) > 1:
        yield "\n| model | calls | tokens in | cached | written | tokens out |\n| --- | --: | --: | --: | --: | --: |"
        for one in usage:
            numbers = (one.calls, one.tokens_in, one.tokens_cached, one.tokens_written, one.tokens_out)
            yield f"| {_cell(one.model or '?')} | {' | '.join(f'{number:,}' for number in numbers)} |"


def _bill(usage: Iterable[Usage], prices: Sequence[Price]) -> _Bill:
    """What calls cost at these prices, the first that fits each."""
    money, plain, unpriced = 0.0, 0, list[str]()
    for one in usage:
        price = next((price for price in prices if fnmatchcase(one.model, price.model)), None)
        if price is None:
            unpriced.append(one.model or "?")
        else:
            money += price.of(one)
            plain += price.unpriced(one)
    return _Bill(money, unpriced, plain)


def _table(entries: Sequence[Entry]) -> Iterator[str]:
    yield "| | ran | answers | why | took | recorded |"
    yield "| --- | --- | --: | --- | --: | --: |"
    for one in entries[:_MOST_ROWS]:
        sign = "❌" if one.code else "✅"
        answers = f"{one.answered} of {one.exchanges}" if one.exchanges else ""
        why = _cell(_cut(one.why, _LONGEST_WHY)) if one.why else ""
        times = (duration(ns) if ns else "" for ns in (one.took_ns, one.waited_ns))
        yield f"| {sign} | {_cell(one.name)} | {answers} | {why} | {' | '.join(times)} |"
    if len(entries) > _MOST_ROWS:
        yield f"\nand {len(entries) - _MOST_ROWS} more"


def _details(one: Entry) -> str:
    """What is told of one that failed: the first thing, and how many more there are. Empty where there is nothing."""
    if not one.told and not one.kept:
        return ""
    lines = [f"<details><summary><code>{html.escape(_inert(printable(one.name)))}</code></summary>\n"]
    if one.told:
        first = one.told[0]
        lines.append(fenced(_inert(_cut(f"{first.kind}: {first.text}", _LONGEST))))
        lines += [f"and {len(one.told) - 1} more\n"] if len(one.told) > 1 else []
    lines += [f"tape: {_cell(one.tape)}\n"] if one.tape else []
    lines += [f"what it did: {_cell(kept)}\n" for kept in one.kept[:_KEPT]]
    return "\n".join((*lines, "</details>"))


def _cell(text: str) -> str:
    """Code in a table, whose columns are told apart first."""
    return _inert(code(_cut(text, _LONGEST_WHY))).replace("|", "\\|")


def inert_json(text: str) -> str:
    """JSON that says the same, in which nothing is a command to a runner: it looks for one anywhere in a line."""
    return text.replace("##[", "#\\u0023[")


def _inert(text: str) -> str:
    """Text in which no line is a command to a runner."""
    return _COMMAND.sub(r"\1\\x3a", text).replace("##[", "#\\x23[")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
