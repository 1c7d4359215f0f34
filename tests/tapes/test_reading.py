"""How a tape is read: its version, its rules, and what a replay adds."""

import pytest

from tapeproxy.tapes.identity import identify
from tapeproxy.tapes.machine import Marks, marks
from tapeproxy.tapes.reading import VERSION, Reading, replay_reading, taped_reading
from tapeproxy.tapes.records import Head, Headers, Json
from tapeproxy.tapes.rules import Rules, parse_rule, read_rules

RULE = parse_rule("ignore-json", "$.id")
MARKS = marks({"cwd": ("/home/ada",)}, {"cwd": ("/builds/x",)})


def head(**rules: object) -> Head:
    return Head(rules=rules)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"matching": 3}, "version 3; this program knows up to 2"),
        ({"matching": "2"}, "which is none"),
        ({"matching": True}, "which is none"),
        ({"matching": 0}, "which is none"),
        ({"matching": 2, "user": {}}, "no list"),
        ({"matching": 2, "user": ["rewrite-body (a+)+=b"]}, "a rule in the head cannot be read: rewrite-body"),
    ],
)
def test_a_head_that_cannot_be_read_is_refused(rules: Json, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        taped_reading(Head(rules=rules))


def test_a_replay_reads_by_the_tape_s_rules_then_by_its_own() -> None:
    taped = head(matching=2, user=["match-header x-beta", str(RULE)])
    more = parse_rule("ignore-query", "ts")
    reading = replay_reading(taped, (RULE, more), Marks())
    assert [str(rule) for rule in reading.rules.rules] == ["match-header x-beta", str(RULE), str(more)]
    assert replay_reading(taped, (more,), Marks(), taped=False).rules.rules == (more,)
    assert b"x-beta" in reading.headers


@pytest.mark.parametrize(
    ("rules", "added", "marked", "version"),
    [
        ({}, (), Marks(), 1),
        ({"matching": 1}, (), Marks(), 1),
        ({"matching": 1}, (RULE,), Marks(), VERSION),
        ({"matching": 1}, (), MARKS, VERSION),
        ({"matching": 2}, (), Marks(), 2),
    ],
)
def test_the_version_is_the_tape_s_where_that_is_enough(
    rules: Json, added: tuple[()], marked: Marks, version: int
) -> None:
    assert replay_reading(Head(rules=rules), added, marked).version == version


JSON: Headers = ((b"Content-Type", b"application/json"),)
FORM: Headers = ((b"content-type", b"application/x-www-form-urlencoded"),)
PARTS: Headers = ((b"content-type", b"multipart/form-data; boundary=xyz"),)
# Computed by the code of version 1 and never to be changed: tapes were sealed with trace hashes made of these.
type _Asked = tuple[bytes, bytes, Headers, bytes]
GZIP = (*JSON, (b"Content-Encoding", b"gzip"))
CSV: Headers = ((b"Content-Type", b"text/csv; charset=windows-31j"),)
V1: list[tuple[_Asked, str]] = [
    (
        (b"GET", b"https://h/p?b=2&a=1&a=0", (), b""),
        "8b6cbf14588bcc92930cf157b8ab148750324ba53a27bf7a3e2bfe9b025f1ada",
    ),
    (
        (b"POST", b"https://h/", JSON, b'{"b":[1, 2.0],"a":"\\u00e9"}'),
        "937024b24eb176ad6accdfad9bef8b56f4419b97d178771ee300b76116134156",
    ),
    (
        (b"POST", b"https://h/", JSON, b'{"b":1,"a":123456789012345678901}'),
        "6ef418f69ca28447e5bb97c1fd3b8c4b6203820e2c8c1a1c3fc55352067366a7",
    ),
    (
        (b"POST", b"https://h/", JSON, b'{"a"'),
        "b326cdc7483236bb92914b8c3db4dd52b40dca9cfebc6dbbeaca34fda09a0adc",
    ),
    (
        (b"POST", b"https://h/", FORM, b"b=%FF&a=x+y&a="),
        "e04d44ded0f19e4089001db0e77594c2978a27a2963d29e1fbaa1bcf28f30475",
    ),
    (
        (b"POST", b"https://h/", PARTS, b"--xyz\r\n\r\na --xyz\r\n--xyz--\r\n"),
        "d794fb03ca07a3f58b5801581804ed5015dda451bcb5d1010fd71af83f2d6b60",
    ),
    (
        (b"POST", b"https://h/", CSV, b"a,b"),
        "220ae0e73ce36a8022ea61a99b12e952bdc468085490185b6121a2259456b173",
    ),
    (
        (b"PUT", b"http://h:81/x", GZIP, bytes.fromhex("1f8b08000000000002ff")),
        "17fa58dc07e995360cbe518e466f4e49d96901feb11aba84b11143c48df6fc81",
    ),
]


@pytest.mark.parametrize(("asked", "key"), V1)
def test_version_1_means_what_it_meant(asked: _Asked, key: str) -> None:
    assert identify(*asked, reading=Reading(1)).key.hex() == key


def test_readings_that_read_in_the_same_way_are_equal() -> None:
    def made(*rules: str, version: int = 2) -> Reading:
        return Reading(version, Rules(read_rules(rules)), MARKS)

    lines = ("ignore-json $.a[*]", r"rewrite-body \d+=N", "match-header x")
    one, other = made(*lines), made(*lines)
    assert (one, hash(one)) == (other, hash(other))
    assert len({one, made(*lines[:2]), made(*lines[::-1]), made(version=1), Reading(), Reading(1)}) == 6


def test_rules_for_the_url_and_headers() -> None:
    def key(url: bytes, *rules: tuple[str, str], beta: bytes = b"1", kind: bytes = b"application/json") -> bytes:
        reading = replay_reading(head(matching=2), tuple(parse_rule(*rule) for rule in rules), Marks())
        headers = ((b"Content-Type", kind), (b"X-Beta", beta))
        return identify(b"POST", url, headers, b"{}", reading=reading).key

    url = b"https://h/v1/p?a=1"
    assert key(url) == key(url, beta=b"2")
    match, ignore = ("match-header", "x-beta"), ("ignore-header", "X-Beta")
    assert key(url, match) != key(url, match, beta=b"2")
    assert key(url, match, ignore) == key(url, match, ignore, beta=b"2")
    assert key(url, match) != key(url)
    assert key(url) != key(url, kind=b"text/plain")
    typed = ("ignore-header", "content-type")
    assert key(url, typed) == key(url, typed, kind=b"text/plain")
    query = ("ignore-query", "ts")
    assert key(url + b"&ts=1", query) == key(b"https://h/v1/p?ts=2&a=1", query) == key(url, query)
    assert key(url, query) != key(url + b"&t=1", query)
    version = ("rewrite-url", r"/v\d+/=/v/")
    assert key(url, version) == key(b"https://h/v22/p?a=1", version) != key(b"https://h/v/q?a=1", version)
    assert key(url, ("rewrite-url", r"\?.*=")) == key(b"https://h/v1/p?x", ("rewrite-url", r"\?.*="))


def test_a_rewrite_that_leaves_no_url_is_an_error() -> None:
    reading = Reading(rules=replay_reading(head(matching=2), (parse_rule("rewrite-url", "h.*=x"),), Marks()).rules)
    with pytest.raises(ValueError, match="not an absolute URL: 'x'"):
        identify(b"GET", b"https://h/", (), b"", reading=reading)


def test_facts_and_ports_count_in_paths_and_queries() -> None:
    def key(url: bytes) -> bytes:
        return identify(b"GET", url, (), b"", reading=Reading(marks=MARKS)).key

    assert key(b"https://h/f/%2Fhome%2Fada?p=/home/ada/x") == key(b"https://h/f/%2Fbuilds%2Fx?p=%2Fbuilds%2Fx%2Fx")
    assert key(b"https://h/?u=http://127.0.0.1:41234/") == key(b"https://h/?u=http%3A%2F%2F127.0.0.1%3A55555%2F")
    assert key(b"http://127.0.0.1:41234/") != key(b"http://127.0.0.1:55555/")
