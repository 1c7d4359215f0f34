"""Where in the events of a Gemini stream the values of its answer stand; see `places.py`."""

from collections.abc import Iterator

from tapeproxy.tapes.assembled import Assembled, Events, Keys, Piece
from tapeproxy.tapes.dialects.shapes import count_of, mapping_of, numbered
from tapeproxy.tapes.records import Json


def assemble(events: Events) -> Assembled:
    """A text that goes on in the next event is one part, as is a thought; every other part comes whole."""
    out = Assembled()
    parts: dict[int, tuple[int, str]] = {}  # of each candidate, how many there are and what the last one is
    for number, event in events:
        for key, value in event.items():
            if key != "candidates":
                out.copy((key,), Piece(number, (key,), value))
        for at, candidate in numbered(event.get("candidates")):
            index = count_of(candidate.get("index")) or 0
            keys, place = ("candidates", index), ("candidates", at)
            for key, value in candidate.items():
                if key != "content":
                    out.copy((*keys, key), Piece(number, (*place, key), value))
            content = mapping_of(candidate.get("content"))
            for key, value in content.items():
                if key != "parts":
                    out.copy((*keys, "content", key), Piece(number, (*place, "content", key), value))
            for n, part in numbered(content.get("parts")):
                count, last = parts.get(index, (0, ""))
                kind = _kind(part)
                if not kind or kind != last:
                    count += 1
                parts[index] = count, kind
                where: Keys = (*keys, "content", "parts", count - 1)
                _take_part(out, number, where, (*place, "content", "parts", n), part)
    return out


def _kind(part: Json) -> str:
    if not isinstance(part.get("text"), str):
        return ""
    return "thought" if part.get("thought") is True else "text"


def _take_part(out: Assembled, number: int, keys: Keys, place: Keys, part: Json) -> None:
    for key, value in part.items():
        piece = Piece(number, (*place, key), value)
        if key == "text" and isinstance(value, str):
            # An empty text ends many a stream, after a call, too: nothing is said there.
            out.delta((*keys, key), piece, words=bool(value) and _kind(part) == "text")
        else:
            out.copy((*keys, key), piece)


def words(answer: Json) -> Iterator[Keys]:
    """Where what the model says to its user stands in a plain answer."""
    for at, candidate in numbered(answer.get("candidates")):
        for n, part in numbered(mapping_of(candidate.get("content")).get("parts")):
            if _kind(part) == "text":
                yield "candidates", at, "content", "parts", n, "text"
