"""The search finds what the question is about."""

import pytest

from tapeproxy.testing import corpus


@pytest.mark.parametrize(
    ("query", "slugs"),
    [
        ("Why are there two tides a day?", ["tides"]),
        ("magnetic TAPE", ["tape"]),
        ("the sun", ["honeybees"]),
        ("what is the", []),
        ("", []),
    ],
)
def test_search(query: str, slugs: list[str]) -> None:
    assert [page.slug for page in corpus.search(query)][: len(slugs) or 1] == slugs


def test_search_is_limited_and_ordered() -> None:
    assert len(corpus.search("sun moon tape bread lens colour", limit=3)) == 3
    assert [page.slug for page in corpus.search("colour bread")] == ["aurora", "sourdough"]


def test_every_page_is_found_by_its_own_title_and_slug() -> None:
    for page in corpus.PAGES:
        assert corpus.search(page.title)[0] == page
        assert corpus.find(page.slug) == page
    assert corpus.find("nothing") is None
