"""Where two requests differ, place by place."""

import pytest

from tapeproxy.tapes.differences import difference_text, differences, json_differences
from tapeproxy.tapes.identity import identify

URL = b"https://api.example.com/v1/chat"
JSON = ((b"content-type", b"application/json"),)
FORM = ((b"content-type", b"application/x-www-form-urlencoded"),)
UUIDS = ("5b1f0c1e-8a0f-4c59-9d0f-2f4a1f0b7d11", "0c9e4f0e-1111-4c59-9d0f-2f4a1f0b7d12")


@pytest.mark.parametrize(
    ("taped", "asked", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [("body $.a", "1", "true")]),
        ({"a": 1}, {"a": 1.0}, [("body $.a", "1", "1.0")]),
        ([1], [True], [("body $[0]", "1", "true")]),
        ({"a": None}, {}, [("body $.a", "null", None)]),
        ({}, {"a b": 1}, [('body $["a b"]', None, "1")]),
        ([1, 2, 3], [1, 9, 3], [("body $[1]", "2", "9")]),
        ([1, 2, 3], [1, 3], [("body $[1]", "2", None)]),
        ([1, 3], [1, 2, 3], [("body $[1]", None, "2")]),
        ({"m": [{"r": "a"}, {"r": "b"}]}, {"m": [{"r": "x"}, {"r": "a"}, {"r": "b"}]}, [("body $.m[0]", None, None)]),
        ([{"x": 1}], [[1]], [("body $[0]", '{"x": 1}', "[1]")]),
    ],
)
def test_json_differs_at_its_paths(
    taped: object, asked: object, found: list[tuple[str, str | None, str | None]]
) -> None:
    told = [(d.where, d.taped, d.asked) for d in json_differences(taped, asked)]
    assert [where for where, _, _ in told] == [where for where, _, _ in found]
    for mine, theirs in zip(told, found, strict=True):
        assert theirs[1:] == (None, None) or mine == theirs


@pytest.mark.parametrize(
    ("taped", "asked", "kind", "rule"),
    [
        ({"id": UUIDS[0]}, {"id": UUIDS[1]}, "uuid", "ignore-json $.id"),
        ({"m": [{"t": 1764410400}]}, {"m": [{"t": 1764410401}]}, "timestamp", "ignore-json $.m[*].t"),
        ({"n": 1}, {"n": 2}, "counter", "ignore-json $.n"),
        ({"n": "x"}, {"n": "y"}, "", "ignore-json $.n"),
        (
            {"p": "Today is 2026-11-29. Be brief."},
            {"p": "Today is 2026-11-30. Be brief."},
            "date",
            r"rewrite-body Today is \d[\d./-]*\d=Today is <date>",
        ),
        ({"p": "Answer in English, please"}, {"p": "Answer in French, please"}, "", ""),
    ],
)
def test_noise_is_named_with_the_rule_against_it(taped: object, asked: object, kind: str, rule: str) -> None:
    (found,) = json_differences(taped, asked)
    assert (found.kind, found.rule) == (kind, rule)


def test_pairs_differ_by_name() -> None:
    one = identify(b"POST", URL + b"?page=1&q=a", FORM, b"a=1&b=2")
    other = identify(b"POST", URL + b"?page=2", FORM, b"a=1&b=3")
    found = [(d.where, d.taped, d.asked, d.rule) for d in differences(one, other)]
    assert found == [
        ("query page", "1", "2", "ignore-query page"),
        ("query q", "a", None, "ignore-query q"),
        ("form field b", "2", "3", "ignore-form b"),
    ]


def test_what_comes_before_the_body_is_told_first() -> None:
    one, other = identify(b"POST", URL, JSON, b'{"a":1}'), identify(b"GET", b"http://h:81/v2", (), b"")
    assert [d.where for d in differences(one, other)] == [
        "method",
        "scheme",
        "host",
        "path",
        "header content-type",
        "body",
    ]


def test_a_difference_as_text_ends_with_the_option_to_type() -> None:
    (found,) = json_differences({"id": UUIDS[0]}, {"id": UUIDS[1]})
    assert difference_text(found).splitlines() == [
        "    body $.id",
        f"      tape: {UUIDS[0]}",
        f"      now:  {UUIDS[1]}",
        "      both look like a uuid; if it is noise: --ignore-json '$.id'",
    ]
