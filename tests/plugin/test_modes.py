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
    found = [deed_of(mode, exists=exists, expired=old) for exists, old in ((False, False), (True, False), (True, True))]
    assert found == [missing, there, expired]


def test_the_table_has_every_mode() -> None:
    assert len(MODES) == 7
