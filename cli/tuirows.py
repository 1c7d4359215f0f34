"""The rows of the terminal viewer: lanes with their exchanges, or all exchanges in order. Knows a tape, no screen."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from tapeproxy.cli.rendering import duration, printable
from tapeproxy.tapes.decoder import Ending
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange, Tape
from tapeproxy.tapes.records import Json
from tapeproxy.web.overview import labels, outline
from tapeproxy.web.searching import find

type Order = Literal["lanes", "time", "rank"]

ORDERS: Final[tuple[Order, ...]] = ("lanes", "time", "rank")
FIELDS: Final = ("host", "status", "model", "lane", "how", "source", "method", "path", "is", "body")


@dataclass(frozen=True, slots=True)
class Line:
    """A row: of an exchange (`number`), or the head of a `lane`."""

    lane: int
    number: int | None = None


class Rows:
    """The exchanges of a tape as the viewer lists them."""

    def __init__(self, tape: Tape, ending: Ending | None, name: str) -> None:
        self.tape = tape
        made = outline(tape, ending, name)
        self.about: Json = made["tape"]
        self.lanes: Sequence[Json] = made["lanes"]
        self._columns: dict[str, Any] = made["rows"]
        self._hosts: list[str] = self._columns.pop("hosts")
        self.count = len(tape.exchanges)
        self._label = lru_cache(4096)(self._read_label)

    def lane(self, number: int) -> int:
        """The lane of an exchange, by its place in `lanes`."""
        return int(self._columns["lane"][number - 1])

    def lines(self, order: Order, numbers: Iterable[int], folded: frozenset[int], ranked: Sequence[int]) -> list[Line]:
        """The rows that are shown, of these exchanges; `ranked`: all in causal order; `folded`: lanes that are shut."""
        shown = [*numbers]
        if order == "rank":
            kept = set(shown)
            shown = [number for number in ranked if number in kept]
        if order != "lanes":
            return [Line(self.lane(number), number) for number in shown]
        by_lane: dict[int, list[Line]] = {}
        for number in shown:
            lane = self.lane(number)
            by_lane.setdefault(lane, []).append(Line(lane, number))
        out: list[Line] = []
        for lane, lines in sorted(by_lane.items()):
            out.append(Line(lane))
            out += [] if lane in folded else lines
        return out

    def words(self, line: Line, order: Order) -> str:
        """A row in words, safe to show."""
        if line.number is None:
            return self._lane_words(line.lane)
        at = line.number - 1
        label = self._label(line.number)
        status = self._columns["status"][at]
        how = self._columns["how"][at]
        result = str(status) if status is not None and how == "complete" else f"{status or ''} {how or '…'}".strip()
        began, ended = self._columns["at"][at], self._columns["end"][at]
        took = "…" if ended is None else duration((ended - began) * 1000)
        what = label.get("model") or f"{self._columns['method'][at]} {self._columns['path'][at]}"
        said = label.get("said") or label.get("words") or ("" if label else self._host(at))
        indent = "  " if order == "lanes" else ""
        return printable(f"{indent}{line.number:>5} {result:<4} {took:>8}  {what}  {said}")

    def failed(self, number: int) -> bool:
        """Whether it did not end well."""
        return self._columns["how"][number - 1] != "complete" or (self._columns["status"][number - 1] or 0) >= 400

    def chosen(self, query: str) -> list[int]:
        """The exchanges that fit all words of a query. Raises UsageError for a field that there is not."""
        tests = [self._test(word) for word in query.split()]
        return [number for number in range(1, self.count + 1) if all(test(number) for test in tests)]

    def _test(self, word: str) -> Callable[[int], bool]:
        if word.startswith("-") and len(word) > 1:
            test = self._test(word[1:])
            return lambda number: not test(number)
        field, colon, wanted = word.partition(":")
        wanted = wanted.lower()
        if not colon:
            said = word.lower()
            return lambda number: said in self._about(number)
        if field not in FIELDS:
            raise UsageError(f"there is no filter {field}:", fix=f"there are {', '.join(FIELDS)}")
        if field == "body":
            found = set(find(self.tape, wanted))
            return lambda number: number in found
        return lambda number: self._fits(number, field, wanted)

    def _fits(self, number: int, field: str, wanted: str) -> bool:
        at = number - 1
        match field:
            case "host":
                return wanted in self._host(at).lower()
            case "lane":
                lane = self.lanes[self.lane(number)]
                return wanted in (str(lane["id"]).lower(), str(lane["name"]).lower())
            case "status":
                return str(self._columns["status"][at]).startswith(wanted)
            case "model":
                return wanted in str(self._label(number).get("model") or "").lower()
            case "is":
                return self._is(number, wanted)
            case _:
                return wanted in str(self._columns[field][at] or "").lower()

    def _is(self, number: int, wanted: str) -> bool:
        match wanted:
            case "failed":
                return self.failed(number)
            case "llm":
                return bool(self._label(number))
            case "streamed":
                return int(self._columns["chunks"][number - 1]) > 1
            case _:
                raise UsageError(f"nothing is:{wanted}", fix="is:failed, is:llm, is:streamed")

    def _about(self, number: int) -> str:
        at = number - 1
        texts = [self._columns["method"][at], self._host(at), self._columns["path"][at], self._columns["status"][at]]
        texts += [self._label(number).get(name) or "" for name in ("model", "words", "said")]
        return " ".join(map(str, texts)).lower()

    def _host(self, at: int) -> str:
        place: int = self._columns["host"][at]
        return self._hosts[place]

    def _lane_words(self, lane: int) -> str:
        about = self.lanes[lane]
        name = f"{about['name']} " if about["name"] else ""
        return printable(f"▸ {name}{about['id'] or 'of no lane'} {about['kind']}".rstrip())

    def _read_label(self, number: int) -> Json:
        exchange: Exchange = self.tape.exchanges[number - 1]
        made = labels([exchange])
        return {name: column[0] for name, column in made.items() if column}
