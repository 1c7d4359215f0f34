"""Edits keep the boundaries of pieces; what they add up to is what editing the whole gives."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.splicing import Edit, apply, recut, settled, splice


@st.composite
def edited(draw: st.DrawFn) -> tuple[list[bytes], list[Edit]]:
    text = draw(st.binary(max_size=60))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]
    places = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(sorted).filter(lambda p: p[0] < p[1])
    edits = draw(st.lists(st.builds(lambda p, new: Edit(p[0], p[1], new), places, st.binary(max_size=12)), max_size=5))
    return pieces, settled(edits)


@given(edited())
def test_the_pieces_add_up_to_the_edited_text(case: tuple[list[bytes], list[Edit]]) -> None:
    pieces, edits = case
    out = splice(pieces, edits)
    assert b"".join(out) == apply(b"".join(pieces), edits)
    assert len(out) == len(pieces)


@given(edited())
def test_what_no_edit_touches_stays_in_its_piece(case: tuple[list[bytes], list[Edit]]) -> None:
    pieces, edits = case
    start = 0
    for old, new in zip(pieces, splice(pieces, edits), strict=True):
        if not any(edit.start < start + len(old) and start < edit.end for edit in edits):
            assert new == old
        start += len(old)


@given(edited())
def test_edits_of_equal_length_move_no_boundary(case: tuple[list[bytes], list[Edit]]) -> None:
    pieces, edits = case
    same = [edit._replace(new=bytes(edit.end - edit.start)) for edit in edits]
    assert list(map(len, splice(pieces, same))) == list(map(len, pieces))


def test_of_overlapping_edits_the_first_holds() -> None:
    assert settled([Edit(2, 4, b"x"), Edit(0, 3, b"y"), Edit(0, 2, b"z")]) == [Edit(0, 3, b"y")]


@given(st.lists(st.binary(max_size=9), max_size=5), st.binary(max_size=40))
def test_another_text_is_cut_alike(pieces: list[bytes], text: bytes) -> None:
    out = recut(pieces, text)
    assert len(out) == len(pieces)
    if pieces:
        assert b"".join(out) == text
