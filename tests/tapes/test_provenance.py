"""What is said of a difference: where it comes from, or what it looks like."""

import pytest

from tapeproxy.tapes.provenance import Provenance, SiteCount, Source, Surroundings, guess, why
from tapeproxy.tapes.readings import Site

AROUND = Surroundings(frozenset({4711}), ("/home/ada/project", "/home/ada", "/tmp", ""), "build-7")
SITE = Site("uuid.uuid4", ("/app/agent.py:3 in main", "/app/agent.py:9 in <module>"), ("openai._base_client",))


@pytest.mark.parametrize(
    ("taped", "asked", "changed", "said"),
    [
        ("process 12", "process 4711", True, "the id of a process"),
        ("process 12", "process 4712", True, "is another one in each replay"),
        ("<A object at 0x7f3a5c6d7e80>", "<A object at 0x7f3a5c6d0000>", True, "a memory address"),
        ("id 140234567890123", "id 140234567890321", True, "a memory address (id())"),
        ("on web-1", "on build-7", False, "the name of this machine"),
        ("in /home/eve/x", "in /home/ada/x", False, "a path on this machine"),
        ("at http://localhost:5001/x", "at http://localhost:6001/x", True, "a port on this machine"),
        ("0" * 8, "d4ca724b-fcb4-4fd1-ac6e-a113b585972b", True, "a uuid made by another program"),
        ("changed 2025-01-01", "changed 2026-11-29", False, "a time from another clock, a file or another program"),
        ("at 1795993238", "at 1795993239", True, "a time from another clock"),
        ("mode fast", "mode slow", False, "the same in each replay: it comes from the code, its arguments or a file"),
        ("['a', 'b']", "['b', 'a']", True, "another one in each replay"),
        ("x", None, False, "leaves this out"),
        (None, "more", False, "the same in each replay"),
    ],
)
def test_a_guess_by_what_a_value_looks_like(taped: str | None, asked: str | None, changed: bool, said: str) -> None:
    assert said in guess(taped, asked, changed, AROUND)


def test_what_both_have_is_not_guessed_at() -> None:
    assert "id of a process" not in guess("4711 is fast", "4711 is slow", False, AROUND)


def test_why_a_read_differs_depends_on_the_tape() -> None:
    clamped, live = Source("value", "x", SITE, "m"), Source("value", "1", Site("os.getpid"), "m", clamped=False)
    assert why([live], seeded=True) == why([], seeded=True) == ""
    assert "recorded without the shim" in why([live, clamped], seeded=False)
    assert "came to it another way" in why([clamped], seeded=True)


def test_the_block_for_a_terminal() -> None:
    source = Source("part", "d4ca724b", SITE, "m")
    one = Provenance("POST https://x.test/", "body $.prompt", "run d4ca724b", (source,), hint="It is so.")
    assert one.to_text().splitlines() == [
        "body $.prompt of POST https://x.test/",
        "  'd4ca724b' contains a part of the value of uuid.uuid4(), "
        "read at /app/agent.py:3 in main (via openai._base_client)",
        "    called from /app/agent.py:9 in <module>",
        "  It is so.",
    ]


def test_places_come_after_the_sentence_that_speaks_of_them() -> None:
    counts = (SiteCount(Site("time.time", ("a.py:41 in poll",)), 9), SiteCount(Site("time.time", (), ("logging",)), 1))
    one = Provenance("lane m", "clock reads before it", "14", sites=counts, hint="These did.")
    assert one.to_text().splitlines()[1:] == [
        "  These did.",
        "  at a.py:41 in poll: time.time(), 9 reads",
        "  by logging: time.time(), 1 read",
    ]


def test_the_report_has_everything() -> None:
    one = Provenance("POST https://x.test/", "body", "x", (Source("value", "x", SITE, "m"),))
    assert one.to_json() == {
        "request": "POST https://x.test/",
        "where": "body",
        "asked": "x",
        "sources": [
            {
                "how": "value",
                "text": "x",
                "site": {"what": SITE.what, "where": SITE.where, "via": SITE.via},
                "lane": "m",
                "clamped": True,
            }
        ],
        "sites": [],
        "hint": "",
    }
