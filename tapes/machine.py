"""What a run says of its machine, so that a replay on another one is still known. Knows texts, asks no system.

Agents print their working directory, home, host name, system and Python version into prompts. A `Fact` is such a text.
A tape lists the facts that its requests hold; where they are others here, the text of either machine counts as one and
the same in every request, taped or asked. Ports that a system gives out are the same everywhere.

Facts count only at boundaries, as whole components of a path or whole words, in the forms that JSON, JSON in JSON and
URLs give them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, get_args
from urllib.parse import quote

from tapeproxy.tapes.records import Head, Note

type Fact = Literal["cwd", "home", "tmpdir", "hostname", "platform", "release", "system", "python", "python-build"]
FACTS: Final[tuple[Fact, ...]] = get_args(Fact.__value__)
NOTE: Final = "machine"
"""The `what` of the note that holds a tape's facts."""
SHORTEST: Final = 4
_PATHS = frozenset({"cwd", "home", "tmpdir"})
_NEVER = frozenset({"localhost", "localhost.localdomain"})
_LONGEST = 4096
_MOST = 8
"""Texts of one fact that are looked at."""

type Facts = Mapping[Fact, tuple[str, ...]]

# A letter after a backslash may be the escape of a line's end, as JSON and programs write it.
_BEFORE = rb"(?:(?<![\w\x80-\xff.~-])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2}))"
_AFTER = rb"(?![\w\x80-\xff-])(?!\.\w)"
_LOOPBACK_PORT = re.compile(rb"(127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1\]):(\d{5})(?!\d)")
_ANY_PORT = re.compile(rb":[3-6]\d{4}(?!\d)")
_EPHEMERAL = range(32768, 65536)


class Marks(NamedTuple):
    """Texts that are replaced by marks before requests are compared: longer ones first."""

    texts: tuple[tuple[bytes, bytes], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __call__(self, data: bytes) -> bytes:
        """`data` with the facts in it marked, and with no port that a system gave out."""
        return hide_ports(self.replace(data))

    def replace(self, data: bytes) -> bytes:
        """`data` with the facts in it marked."""
        absent = tuple(sign for sign in (b"\\/", b"%2") if self.texts and sign not in data)
        for text, mark in self.texts:
            if any(sign in text for sign in absent):
                continue  # most bodies hold no such form at all, and each look-up reads all of a body
            # `in` is far faster than the expression, which most texts never need.
            if text in data:
                data = re.sub(_BEFORE + re.escape(text) + _AFTER, mark, data)
        return data


def hide_ports(data: bytes) -> bytes:
    """`data` with loopback addresses whose port is one that systems give out (32768 and up) without that port."""
    if _ANY_PORT.search(data) is None:
        return data
    return _LOOPBACK_PORT.sub(lambda m: m[1] + b":<port>" if int(m[2]) in _EPHEMERAL else m[0], data)


def usable(facts: Mapping[Fact, Iterable[object]] | Mapping[str, Iterable[object]]) -> Facts:
    """The facts that say enough to be looked for: no `/`, no `localhost`, nothing short."""
    out: dict[Fact, tuple[str, ...]] = {}
    for name in FACTS:
        texts = dict.fromkeys(_trimmed(name, text) for text in facts.get(name, ()) if isinstance(text, str))
        good = tuple(filter(_is_telling, texts))
        if good:
            out[name] = good[:_MOST]
    return out


def marks(taped: Facts, here: Facts) -> Marks:
    """The marks for a tape with the facts `taped` on a machine with those of `here`; none where they agree."""
    groups: list[tuple[str, set[str]]] = []
    for name in FACTS:
        if name not in taped or _agree(name, taped[name], here.get(name, ())):
            continue
        texts = {*taped[name], *here.get(name, ())}
        # A text that is two facts at once, as a home that is the working directory, makes them one.
        for other in [group for group in groups if group[1] & texts]:
            groups.remove(other)
            texts |= other[1]
        groups.append((name, texts))
    pairs = {form: b"<%s>" % name.encode() for name, texts in groups for text in texts for form in forms(text)}
    return Marks(tuple(sorted(pairs.items(), key=lambda pair: (-len(pair[0]), pair))))


class Noticed:
    """Which of a machine's facts the requests of a tape hold: those are on the tape already, others stay off it."""

    def __init__(self, facts: Facts) -> None:
        self._unseen = {(name, text): forms(text) for name, texts in facts.items() for text in texts}
        self._seen: dict[Fact, list[str]] = {}

    def look(self, data: bytes) -> None:
        """Look for facts in a URL, or a body without its coding."""
        for (name, text), written in list(self._unseen.items()):
            if any(form in data and re.search(_BEFORE + re.escape(form) + _AFTER, data) for form in written):
                self._seen.setdefault(name, []).append(text)
                del self._unseen[name, text]

    def facts(self) -> dict[str, list[str]]:
        """What was found, for a note."""
        return {name: self._seen[name] for name in FACTS if name in self._seen}


def facts_of(head: Head, notes: Iterable[Note], *, whole: bool) -> Facts:
    """The facts that a tape's requests hold. Where nobody looked, as of an interrupted tape, what the head tells."""
    for note in notes:
        if note.what == NOTE:
            return usable({name: texts for name, texts in note.data.items() if isinstance(texts, list)})
    if whole and head.rules.get("matching", 1) != 1:
        return {}
    return usable({"cwd": [head.cwd], "tmpdir": [head.tmpdir or ""]})


def forms(text: str) -> set[bytes]:
    """The bytes that a text may be written as: plain, escaped as in JSON, once or twice, and as in URLs."""
    plain = text.encode(errors="surrogateescape")
    ascii_only = re.sub(r"[^\x00-\x7f]", lambda m: _escape(m[0]), text).encode(errors="surrogatepass")
    out = {plain, ascii_only}
    for one in (plain, ascii_only):
        once = one.replace(b"\\", b"\\\\")
        out |= {once, once.replace(b"\\", b"\\\\"), one.replace(b"\\", b"/"), one.replace(b"/", b"\\/")}
    slashed = plain.replace(b"\\", b"/")
    return out | {quote(slashed, safe="/:").encode(), quote(plain, safe="").encode()}


def _agree(name: Fact, taped: tuple[str, ...], here: tuple[str, ...]) -> bool:
    # A run may have several Pythons: that one of them is still there does not say that it is the one that asks.
    return set(taped) == set(here) if name == "python" else set(taped) <= set(here)


def _is_telling(text: str) -> bool:
    # Half surrogate pairs stand for what is not UTF-8, which JSON can't hold.
    good = SHORTEST <= len(text) <= _LONGEST and text.lower() not in _NEVER
    return good and not any("\ud800" <= character <= "\udfff" for character in text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2))


def _trimmed(name: str, text: str) -> str:
    return text.rstrip("/\\") if name in _PATHS else text
