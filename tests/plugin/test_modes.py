"""What each mode makes of a test."""

import pytest

from tapeproxy.plugin.modes import MODES, Deed, Mode, deed_of


@pytest.mark.parametrize(
    ("mode", "missing", "there", "expired"),
    [
        ("none", "replay", "replay", "replay"),
        ("verify", "replay", "replay", "replay"),
        ("once", "record", "replay", "record"),
        ("new", "record", "update", "record"),
        ("update", "record", "update", "update"),
        ("all", "record", "record", "record"),
        ("rewrite", "record", "record", "record"),
    ],
)
def test_deeds(mode: Mode, missing: Deed, there: Deed, expired: Deed) -> None:
    for recorder in (True, False):
        wanted = [missing, there, expired] if recorder or mode != "once" else ["replay"] * 3
        cases = ((False, False), (True, False), (True, True))
        assert [deed_of(mode, exists=one, expired=old, recorder=recorder) for one, old in cases] == wanted


def test_the_table_has_every_mode() -> None:
    assert len(MODES) == 7
