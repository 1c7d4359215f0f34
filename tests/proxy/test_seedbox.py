"""A sealed seed comes back for its owner, and for nobody else."""

from dataclasses import replace

import pytest

from tapeproxy.proxy.seedbox import opened, sealed
from tapeproxy.tapes.records import Head

KEY, OTHER = bytes(range(32)), bytes(32)
HEAD = Head(started_at="2026-01-02T03:04:05Z", seed="ab" * 32)


def test_the_owner_opens_it() -> None:
    box = sealed(HEAD, KEY)
    assert box.seed is None
    assert box.sealed_seed is not None
    assert "ab" * 32 not in box.sealed_seed
    assert opened(box, KEY).seed == HEAD.seed


@pytest.mark.parametrize(
    "change", [{"started_at": "2026-01-02T03:04:06Z"}, {"sealed_seed": "zz"}, {"sealed_seed": "00"}]
)
def test_a_box_that_was_changed_or_moved_stays_closed(change: dict[str, str]) -> None:
    assert opened(replace(sealed(HEAD, KEY), **change), KEY).seed is None


def test_another_key_opens_nothing() -> None:
    assert opened(sealed(HEAD, KEY), OTHER).seed is None


def test_without_a_seed_or_a_box_there_is_nothing_to_do() -> None:
    bare = replace(HEAD, seed=None)
    assert sealed(bare, KEY) == bare == opened(bare, KEY)
    assert opened(HEAD, KEY) == HEAD
