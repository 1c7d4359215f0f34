"""Edits to a text that came in pieces: the boundaries stay where they were. Knows bytes, not why they are edited."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: bytes


def settled(edits: Iterable[Edit]) -> list[Edit]:
    """The edits in order; of those that overlap, the one that begins first, and of these the longest."""
    out: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if not out or edit.start >= out[-1].end:
            out.append(edit)
    return out


def apply(text: bytes, edits: Sequence[Edit]) -> bytes:
    """`text` with settled `edits` made."""
    out: list[bytes] = []
    at = 0
    for edit in edits:
        out += (text[at : edit.start], edit.new)
        at = edit.end
    return b"".join((*out, text[at:]))


def splice(pieces: Sequence[bytes], edits: Sequence[Edit]) -> list[bytes]:
    """The pieces of the edited text: as many; what replaces text across a boundary is cut where that was cut."""
    if not edits:
        return list(pieces)
    text = apply(b"".join(pieces), edits)
    out: list[bytes] = []
    old = begin = shift = done = 0
    for piece in pieces:
        old += len(piece)
        while done < len(edits) and edits[done].end <= old:
            shift += len(edits[done].new) - (edits[done].end - edits[done].start)
            done += 1
        end = old + shift
        if done < len(edits) and edits[done].start < old:
            end = edits[done].start + shift + min(old - edits[done].start, len(edits[done].new))
        out.append(text[begin:end])
        begin = end
    return out


def recut(pieces: Sequence[bytes], text: bytes) -> list[bytes]:
    """Another text in as many pieces of the same lengths; what is left over goes to the last one that has any."""
    out: list[bytes] = []
    at = 0
    for piece in pieces:
        out.append(text[at : at + len(piece)])
        at += len(piece)
    last = max((n for n, piece in enumerate(out) if piece), default=0)
    if out:
        out[last] += text[at:]
    return out
