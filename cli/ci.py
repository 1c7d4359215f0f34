"""`tapeproxy ci`: what reports of replays say, as one summary for a CI's page."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tapeproxy.cli.helpflags import HELP
from tapeproxy.cli.rendering import echo
from tapeproxy.tapes.errors import UsageError

if TYPE_CHECKING:
    from tapeproxy.cli.cisummary import Price
    from tapeproxy.tapes.cireports import Entry

_LARGEST = 256 << 20
"""Bytes of a report that is read."""


class PriceType(click.ParamType["Price"]):
    """`MODEL=IN,OUT`, `MODEL=IN,OUT,CACHED` or `MODEL=IN,OUT,CACHED,WRITTEN`."""

    name = "price"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> "Price":
        from tapeproxy.cli.cisummary import Price

        model, _, prices = str(value).rpartition("=")
        try:
            numbers = [*map(float, prices.split(","))]
        except ValueError:
            numbers = []
        if not model or not 2 <= len(numbers) <= 4 or not all(0 <= one < float("inf") for one in numbers):
            what = "MODEL=IN,OUT[,CACHED[,WRITTEN]], what a million tokens cost"
            self.fail(f"{value!r} is not {what}: 'gpt-4.1*=2,8,0.5'", param, ctx)
        return Price(model, *numbers)


@click.command(context_settings=HELP)
@click.argument("reports", metavar="REPORT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write it there.")
@click.option("--github", is_flag=True, help="Add it to $GITHUB_STEP_SUMMARY, and print annotations of what failed.")
@click.option("--fail", is_flag=True, help="Exit with the worst code of what was replayed, not with 0.")
@click.option(
    "--price",
    "prices",
    multiple=True,
    type=PriceType(),
    metavar="MODEL=IN,OUT[,CACHED[,WRITTEN]]",
    help="What a million tokens cost, and those read from a cache or written to one; MODEL may hold * and ?.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    reports: tuple[Path, ...],
    output: Path | None,
    github: bool,
    fail: bool,
    prices: "tuple[Price, ...]",
    as_json: bool,
) -> int:
    """Make one summary of reports, for a CI's page.

    \b
    tapeproxy replay weekend.tape.jsonl.gz --report report.json -- python agent.py
    pytest --tape-report=tests.json
    tapeproxy ci report.json tests.json --github --fail

    A REPORT is what replay --report, verify --json (also with --times) or pytest --tape-report wrote, or a folder of
    such files: .tapes/failures, where tests that failed leave theirs. The summary is Markdown: what ran, what failed
    and why, the first difference of each with the rule that would ignore it, and what was saved: time, and tokens of
    models. It says tokens, and money only at the prices that you give; there is no list of prices in here.

    \b
    Exit codes: 0 the summary is made
                with --fail: 0 all passed; 3 a violation; 4 a drift; 5 a bad tape; 124 a time-out; else as what failed
                2 a REPORT can't be read, or is none

    --json prints: passed and failed (how many), exit_code (as with --fail), entries (name, tape, code, why, answered,
    exchanges, waited_ns, took_ns, usage, told, kept, file) and saved (waited_ns, took_ns, usage: of each model calls,
    tokens_in, of which tokens_cached and tokens_written, tokens_out and uncounted; money, or null; unpriced;
    cached_at_full_price, a number of tokens). See docs/CI.md.
    """
    from tapeproxy.cli.cisummary import annotations, inert_json, markdown, saved
    from tapeproxy.tapes.cireports import worst

    here = f"{Path.cwd()}{os.sep}"
    found = (replace(entry, tape=entry.tape.removeprefix(here)) for path in reports for entry in _read(path))
    entries = _merged(found)
    code = worst(entry.code for entry in entries)
    text = markdown(entries, prices)
    page = os.environ.get("GITHUB_STEP_SUMMARY", "") if github else ""
    if page:
        _write(Path(page), text, "a")
    if output is not None:
        _write(output, text, "w")
    if as_json:
        document = {
            "passed": sum(not entry.code for entry in entries),
            "failed": sum(bool(entry.code) for entry in entries),
            "exit_code": code,
            "entries": [entry.to_json() for entry in entries],
            "saved": saved(entries, prices),
        }
        echo(inert_json(json.dumps(document, indent=2)))
    elif not page and output is None:
        echo(text.rstrip("\n"))
    if github and not as_json:
        for line in annotations(entries, _folder(os.environ.get("GITHUB_WORKSPACE", ""))):
            echo(line)
    return code if fail else 0


def _merged(found: "Iterator[Entry]") -> "list[Entry]":
    """Each test once: one that failed is in the report of its pytest, and left a file of its own."""
    kept: dict[str, Entry] = {}
    for number, entry in enumerate(found):
        kept.setdefault(entry.name if "::" in entry.name else f"#{number}", entry)
    return list(kept.values())


def _folder(workspace: str) -> str:
    """The working folder as GitHub names it: relative to the repository, with a slash at its end."""
    here = Path.cwd()
    if not workspace or not here.is_relative_to(workspace):
        return ""
    relative = here.relative_to(workspace).as_posix()
    return "" if relative == "." else f"{relative}/"


def _read(path: Path) -> "Iterator[Entry]":
    from tapeproxy.tapes.cireports import read_report

    if path.is_dir():
        for one in sorted(path.glob("*.json")):
            yield from _read(one)
        return
    where = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"the report cannot be read: {(error.strerror or str(error)).lower()}", where=where) from None
    if len(data) > _LARGEST:
        raise UsageError("the report is too large to be one", where=where)
    import orjson

    try:
        document = orjson.loads(data)
    except ValueError as error:
        raise UsageError(f"it is no report of tapeproxy: it is no JSON: {error}", where=where) from None
    try:
        yield from read_report(document, where)
    except ValueError as error:
        raise UsageError(str(error), where=where) from None


def _write(path: Path, text: str, mode: str) -> None:
    try:
        with path.open(mode, encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        what = f"the summary cannot be written: {(error.strerror or str(error)).lower()}"
        raise UsageError(what, where=str(path)) from None
