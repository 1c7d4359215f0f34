"""The rows of the terminal viewer: lanes with their exchanges, or all exchanges in order. Knows outlines, no screen."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from tapeproxy.cli.rendering import duration, printable
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Exchange
from tapeproxy.tapes.records import Json
from tapeproxy.web.overview import labels

type Order = Literal["lanes", "time", "rank"]

ORDERS: Final[tuple[Order, ...]] = ("lanes", "time", "rank")
FIELDS: Final = ("host", "status", "model", "lane", "how", "source", "method", "path", "is", "body")


@dataclass(frozen=True, slots=True)
class Line:
    """A row: the head of a `lane` (its id), or an exchange of it (`number`).

    Where two runs are compared `other` is what stands for it in the other one, and `event` its place in the diff.
    """

    lane: str
    number: int | None = None
    other: int | None = None
    event: int | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The exchanges in it."""
        return tuple(one for one in (self.number, self.other) if one is not None)


class Rows:
    """The exchanges of a tape as the viewer lists them, or those of two that are compared.

    `drawn`: an outline as `web.overview` makes it. `exchange` gives one by its number, `find` the numbers of those that
    say a text. `different`: those that differ from the other tape.
    """

    def __init__(
        self,
        drawn: Json,
        exchange: Callable[[int], Exchange],
        find: Callable[[str], Collection[int]],
        different: frozenset[int] = frozenset(),
    ) -> None:
        self._exchange = exchange
        self._find = find
        self._different = different
        self.about: Json = {}
        self.lanes: Sequence[Json] = []
        self.places: dict[str, int] = {}
        """Where each lane stands, by its id."""
        self.columns: dict[str, list[Any]] = {}
        self._labels: dict[int, Json] = {}
        self.update(drawn)

    @property
    def count(self) -> int:
        """How many exchanges there are."""
        return len(self.columns["number"])

    def update(self, drawn: Json) -> None:
        """Take an outline of all exchanges, or of those of which there is something new."""
        self.about, self.lanes = drawn["tape"], drawn["lanes"]
        self.places = {lane["id"]: at for at, lane in enumerate(self.lanes)}
        rows = drawn["rows"]
        # Lanes and hosts by name: their places are others when more of them have come.
        names = {
            "host": [rows["hosts"][at] for at in rows["host"]],
            "lane": [self.lanes[at]["id"] for at in rows["lane"]],
        }
        for name in rows:
            if name == "hosts":
                continue
            column = self.columns.setdefault(name, [])
            for number, value in zip(rows["number"], names.get(name, rows[name]), strict=True):
                column[number - 1 : number] = [value]
        for number in rows["number"]:
            self._labels.pop(number, None)

    def lane(self, number: int) -> str:
        """The lane of an exchange, by its id."""
        found: str = self.columns["lane"][number - 1]
        return found

    def lines(self, order: Order, numbers: Iterable[int], folded: frozenset[str], ranked: Sequence[int]) -> list[Line]:
        """The rows that are shown, of these exchanges; `ranked`: all in causal order; `folded`: lanes that are shut."""
        shown = [*numbers]
        if order == "rank":
            kept = set(shown)
            shown = [number for number in ranked if number in kept]
        if order != "lanes":
            return [Line(self.lane(number), number) for number in shown]
        by_lane: dict[str, list[Line]] = {}
        for number in shown:
            lane = self.lane(number)
            by_lane.setdefault(lane, []).append(Line(lane, number))
        out: list[Line] = []
        for lane in sorted(by_lane, key=self.places.__getitem__):
            out.append(Line(lane))
            out += [] if lane in folded else by_lane[lane]
        return out

    def words(self, number: int, indent: str = "") -> str:
        """An exchange in a line, safe to show."""
        at = number - 1
        label = self._label(number)
        status = self.columns["status"][at]
        how = self.columns["how"][at]
        result = str(status) if status is not None and how == "complete" else f"{status or ''} {how or '…'}".strip()
        began, ended = self.columns["at"][at], self.columns["end"][at]
        took = "…" if ended is None else duration((ended - began) * 1000)
        what = label.get("model") or f"{self.columns['method'][at]} {self.columns['path'][at]}"
        said = label.get("said") or label.get("words") or ("" if label else self.columns["host"][at])
        name = self.columns["label"][at] if "label" in self.columns else number
        return printable(f"{indent}{name:>5} {result:<4} {took:>8}  {what}  {said}")

    def lane_name(self, lane: str) -> str:
        """What a lane is called, in short; of two runs, with the run. Safe to show."""
        about = self.lanes[self.places[lane]]
        name = printable(about["name"] or about["id"] or "no lane")
        return f"{lane[:2]}{name}" if "label" in self.columns and about["name"] else name

    def lane_words(self, lane: str) -> str:
        """The head of a lane, safe to show."""
        about = self.lanes[self.places[lane]]
        name = f"{about['name']} " if about["name"] else ""
        return printable(f"▸ {name}{about['id'] or 'of no lane'} {about['kind']}".rstrip())

    def failed(self, number: int) -> bool:
        """Whether it did not end well; one that has not ended did not fail."""
        how, status = self.columns["how"][number - 1], self.columns["status"][number - 1]
        ended = how is not None or not self.about.get("recording")
        return (ended and how != "complete") or (status or 0) >= 400

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
            found = set(self._find(wanted))
            return lambda number: number in found
        return lambda number: self._fits(number, field, wanted)

    def _fits(self, number: int, field: str, wanted: str) -> bool:
        at = number - 1
        match field:
            case "host":
                return wanted in self.columns["host"][at].lower()
            case "lane":
                lane = self.lanes[self.places[self.lane(number)]]
                return wanted in (str(lane["id"]).lower(), str(lane["name"]).lower())
            case "status":
                return str(self.columns["status"][at]).startswith(wanted)
            case "model":
                return wanted in str(self._label(number).get("model") or "").lower()
            case "is":
                return self._is(number, wanted)
            case _:
                return wanted in str(self.columns[field][at] or "").lower()

    def _is(self, number: int, wanted: str) -> bool:
        match wanted:
            case "failed":
                return self.failed(number)
            case "llm":
                return bool(self._label(number))
            case "streamed":
                return int(self.columns["chunks"][number - 1]) > 1
            case "different":
                return number in self._different
            case _:
                raise UsageError(f"nothing is:{wanted}", fix="is:failed, is:llm, is:streamed, is:different")

    def _about(self, number: int) -> str:
        at = number - 1
        texts = [
            self.columns["method"][at],
            self.columns["host"][at],
            self.columns["path"][at],
            self.columns["status"][at],
        ]
        texts += [self._label(number).get(name) or "" for name in ("model", "words", "said")]
        return " ".join(map(str, texts)).lower()

    def _label(self, number: int) -> Json:
        if number not in self._labels:
            made = labels([self._exchange(number)])
            self._labels[number] = {name: column[0] for name, column in made.items() if column}
        return self._labels[number]
