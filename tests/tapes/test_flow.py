"""Reads are found again in what they became, whatever way a program writes them."""

import base64
import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.differences import json_differences
from tapeproxy.tapes.flow import Trace
from tapeproxy.tapes.readings import Kind, Read, Site, agrees

NS = 1_795_992_469_029_205_166  # 2026-11-29T22:47:49.029205166Z
BERLIN = 3600


def site(what: str, line: int = 12, via: tuple[str, ...] = ()) -> Site:
    return Site(what, (f"/app/agent.py:{line} in main",), via)


def wall(ns: int = NS, what: str = "time.time", lane: str = "m", offset: int = 0, line: int = 12) -> Read:
    return Read(site(what, line), lane, 0, "wall", (repr(ns / 1e9),), ns, offset, 1)


def plain(kind: Kind, *values: str, what: str = "random.randint", lane: str = "m", line: int = 12) -> Read:
    return Read(site(what, line), lane, 0, kind, values)


def moment(ns: int = NS, offset: int = 0) -> datetime:
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=ns // 1000)
    return start.astimezone(timezone(timedelta(seconds=offset)))


# --- times ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "how", "text"),
    [
        ("at 1795992469", "value", "1795992469"),
        ("at 1795992469.0292053", "value", "1795992469.0292053"),
        ("at 1795992469.03", "value", "1795992469.03"),
        ("at 1795992469.02", "value", "1795992469.02"),
        ("at 1795992469029", "value", "1795992469029"),
        ("at 1795992469029205", "value", "1795992469029205"),
        ("at 1795992469029205166", "value", "1795992469029205166"),
        ("at 1795992469.52", "second", "1795992469"),
        ("at 1795992469777", "second", "1795992469"),
        ("2026-11-29T22:47:49.029205", "value", "2026-11-29T22:47:49.029205"),
        ("2026-11-29T22:47:49.029Z", "value", "2026-11-29T22:47:49.029"),
        ("2026-11-29T22:47:49+00:00", "value", "2026-11-29T22:47:49"),
        ("2026-11-29 22:47:49,029 INFO", "value", "2026-11-29 22:47:49,029"),
        ("2026-11-29T22:47:49.777", "second", "2026-11-29T22:47:49"),
        ("2026-11-29T22:47", "minute", "2026-11-29T22:47"),
        ("It is 22:47 now", "minute", "22:47"),
        ("It is 10:47 PM now", "minute", "10:47 PM"),
        ("today is 2026-11-29.", "day", "2026-11-29"),
        ("today is November 29, 2026.", "day", "November 29, 2026"),
        ("today is 29 November 2026.", "day", "29 November 2026"),
        ("run-20261129_224749.log", "value", "20261129_224749"),
        ("Sun, 29 Nov 2026 22:47:49 GMT", "value", "29 Nov 2026 22:47:49"),
        ("12:34 Sun Nov 29 22:47:49 2026", "value", "Nov 29 22:47:49"),
        ("at 22:47:49 sharp", "value", "22:47:49"),
        ("İİ at 1795992469", "value", "1795992469"),
    ],
)
def test_the_ways_to_write_a_time(asked: str, how: str, text: str) -> None:
    found = Trace([wall()]).sources(None, asked)
    assert [(one.how, one.text) for one in found][:1] == [(how, text)]


@pytest.mark.parametrize(
    "asked",
    [
        "at 2795992469",
        "at 17959924690",
        "at 11795992469",
        "2026-11-28T22:47:48",
        "22:48",
        "at 1795992468.02",
        "",
        "now",
    ],
)
def test_what_is_no_way_to_write_this_time(asked: str) -> None:
    assert Trace([wall()]).sources(None, asked) == ()


def test_a_zone_other_than_utc() -> None:
    read = wall(offset=BERLIN)
    text = moment(offset=BERLIN).isoformat()
    assert text.startswith("2026-11-29T23:47:49")
    assert Trace([read]).sources("", text)[0].how == "value"
    assert Trace([wall()]).sources("", text)[0].how == "day"


def test_what_is_on_the_tape_as_well_does_not_tell() -> None:
    taped, asked = "on 2026-11-29 it was 7", "on 2026-11-29 it was 8"
    assert Trace([wall()]).sources(taped, asked) == ()


# --- the rest ------------------------------------------------------------------------------------------------------

HEX = "0c1f9ddd316b414ebd7373877a0386a1"
RAW = bytes.fromhex(HEX)


@pytest.mark.parametrize(
    ("read", "asked", "how", "text"),
    [
        (plain("uuid", HEX), "id " + str(uuid.UUID(HEX)), "value", str(uuid.UUID(HEX))),
        (plain("uuid", HEX), uuid.UUID(HEX).urn, "value", str(uuid.UUID(HEX))),
        (plain("uuid", HEX), HEX.upper(), "value", HEX.upper()),
        (plain("uuid", HEX), str(int(HEX, 16)), "value", str(int(HEX, 16))),
        (plain("uuid", HEX), "req-0c1f9ddd", "part", "0c1f9ddd"),
        (plain("uuid", HEX), "req-0386a1", "part", "0386a1"),
        (plain("bytes", HEX), "k " + base64.b64encode(RAW).decode(), "value", base64.b64encode(RAW).decode()[:-2]),
        (
            plain("bytes", HEX),
            "k " + base64.urlsafe_b64encode(RAW).decode(),
            "value",
            base64.urlsafe_b64encode(RAW).decode()[:-2],
        ),
        (plain("bytes", HEX), HEX, "value", HEX),
        (plain("int", "467"), "467", "value", "467"),
        (plain("int", "467"), "number 467!", "maybe", "467"),
        (plain("int", "4671"), "number 4671!", "value", "4671"),
        (plain("int", "7654321"), "0x74cbb1", "value", "74cbb1"),
        (plain("float", "0.77375840749271"), "x 0.773758", "part", "0.773758"),
        (plain("str", "1b37f671ad5e48c2"), "tok 1b37f671ad5e48c2", "value", "1b37f671ad5e48c2"),
        (plain("list", "c", "b", "c", "b", "a"), "word cbcba", "value", "cbcba"),
        (plain("str", "1b37f671ad5e48c2" * 4), "…9 tok 1b37f671ad5e48c21b37f6…", "part", "1b37f671ad5e48c21b37f6"),
    ],
)
def test_the_ways_to_write_anything_else(read: Read, asked: str, how: str, text: str) -> None:
    found = Trace([read]).sources(None, asked)
    assert [(one.how, one.text) for one in found] == [(how, text)]


@pytest.mark.parametrize(
    ("read", "asked"),
    [
        (plain("int", "467"), "1467"),
        (plain("int", "467"), "4670"),
        (plain("int", "467"), "a467"),
        (plain("uuid", HEX), "0c1f9d0d-req"),
        (plain("none"), "None"),
        (plain("str", ""), "anything"),
    ],
)
def test_what_is_no_way_to_write_it(read: Read, asked: str) -> None:
    assert Trace([read]).sources(None, asked) == ()


def test_letters_drawn_one_by_one_are_found_as_a_word() -> None:
    reads = [plain("str", letter, what="random.choice") for letter in "kqzwpa"]
    found = Trace([plain("int", "5", line=3), *reads]).sources(None, "token kqzwpa")
    assert [(one.text, one.site.what) for one in found] == [("kqzwpa", "random.choice")]


def test_several_reads_in_one_text() -> None:
    asked = f"{uuid.UUID(HEX)} at {moment().isoformat()}"
    found = Trace([wall(what="datetime.datetime.now"), plain("uuid", HEX, what="uuid.uuid4")]).sources(None, asked)
    assert [one.site.what for one in found] == ["uuid.uuid4", "datetime.datetime.now"]


# --- which of several ----------------------------------------------------------------------------------------------


def test_the_lane_s_own_read_comes_before_an_ancestor_s_and_a_stranger_s() -> None:
    lanes = ["m/t1", "m", "m/t0", "m/t0/a1"]
    reads = [plain("int", "467812", lane=lane, line=n) for n, lane in enumerate(lanes)]

    def first(*chosen: Read) -> str:
        return Trace(chosen).sources(None, "467812", "m/t0")[0].lane

    assert first(*reads) == "m/t0"
    assert first(reads[0], reads[1], reads[3]) == "m"
    assert first(reads[0], reads[3]) == "m/t0/a1"


def test_the_last_of_several_reads_in_a_second_counts() -> None:
    reads = [wall(NS + n * 1000, line=n) for n in range(5)]
    assert Trace(reads).sources(None, "at 1795992469")[0].site == reads[-1].site


def test_the_read_with_the_fraction_counts_though_others_share_the_second() -> None:
    reads = [wall(NS + n * 1_000_000, line=n) for n in range(-5, 6)]
    assert Trace(reads).sources(None, moment().isoformat())[0].site.where == ("/app/agent.py:0 in main",)


def test_a_number_is_the_work_of_time_and_a_text_that_of_datetime() -> None:
    reads = [wall(what="datetime.datetime.now"), wall(what="time.time"), wall(what="datetime.datetime.now", line=9)]
    assert Trace(reads).sources(None, "1795992469")[0].site.what == "time.time"
    assert Trace(reads[:2]).sources(None, "2026-11-29T22:47:49")[0].site.what == "datetime.datetime.now"


def test_places_that_read_the_clock_since_the_last_request() -> None:
    reads = [
        *[Read(site("time.time", 41), "m", 1, "float", ("1.0",), clock=1) for _ in range(3)],
        Read(site("time.time", 41), "m", 1, "float", ("1.0",), clock=6, count=6),
        Read(site("time.monotonic", 7), "m", 1, "float", ("1.0",), clock=1),
        Read(site("random.random", 8), "m", 1, "float", ("1.0",)),
        Read(site("time.time", 41), "m", 0, "float", ("1.0",), clock=1),
        Read(site("time.time", 41), "m/t0", 1, "float", ("1.0",), clock=1),
    ]
    found = Trace(reads).sites("m", 1)
    assert [count.to_text() for count in found] == [
        "at /app/agent.py:41 in main: time.time(), 9 reads",
        "at /app/agent.py:7 in main: time.monotonic(), 1 read",
    ]


# --- properties ----------------------------------------------------------------------------------------------------

TIMES: list[Callable[[int, int], str]] = [
    lambda ns, _: str(ns // 10**9),
    lambda ns, _: str(ns // 10**6),
    lambda ns, _: str(ns // 10**3),
    lambda ns, _: str(ns),
    lambda ns, _: repr(ns / 1e9),
    lambda ns, _: str(round(ns / 1e9)),
    lambda ns, _: f"{ns / 1e9:.3f}",
    lambda ns, off: moment(ns, off).isoformat(),
    lambda ns, _: moment(ns, 0).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    lambda ns, off: str(moment(ns, off)),
    lambda ns, off: f"{moment(ns, off):%d %b %Y %H:%M:%S}",
    lambda ns, off: f"{moment(ns, off):%Y%m%d-%H%M%S}",
]
CHANCE: list[Callable[[bytes], tuple[Kind, str, str]]] = [
    lambda raw: ("uuid", raw.hex(), str(uuid.UUID(bytes=raw))),
    lambda raw: ("uuid", raw.hex(), raw.hex()),
    lambda raw: ("uuid", raw.hex(), raw.hex()[:8]),
    lambda raw: ("bytes", raw.hex(), raw.hex()),
    lambda raw: ("bytes", raw.hex(), base64.b64encode(raw).decode()),
    lambda raw: ("bytes", raw.hex(), base64.urlsafe_b64encode(raw).decode().rstrip("=")),
    lambda raw: ("int", str(int.from_bytes(raw)), str(int.from_bytes(raw))),
    lambda raw: ("str", raw.hex(), raw.hex()),
]
instants = st.integers(1_000_000_000 * 10**9, 4_000_000_000 * 10**9)
words = st.text(st.characters(categories=["L", "Zs"], include_characters=".,:!"), max_size=40)


def embed(before: str, text: str, after: str, keys: list[str]) -> object:
    value: object = f"{before} {text} {after}"
    for number, key in enumerate(keys):
        value = {key: value, "other": number} if number % 2 else [number, value, "x"]
    return value


@given(instants, st.sampled_from([0, 3600, -18000, 19800]), st.sampled_from(TIMES), instants, words, words)
def test_a_time_is_found_in_any_text(
    ns: int, offset: int, write: Callable[[int, int], str], other: int, before: str, after: str
) -> None:
    taped, asked = write(other, offset), write(ns, offset)
    trace = Trace([wall(ns, offset=offset), plain("uuid", HEX)])
    found = trace.sources(f"{before} {taped} {after}", f"{before} {asked} {after}")
    if taped != asked and abs(ns - other) > 86400 * 10**9:
        assert found, asked
        assert found[0].site == trace.reads[0].site
        assert found[0].how == "value"
        assert found[0].text in asked


@given(
    st.binary(min_size=16, max_size=16),
    st.binary(min_size=16, max_size=16),
    st.sampled_from(CHANCE),
    words,
    words,
    st.lists(st.sampled_from(["a", "messages", "content"]), max_size=4),
)
def test_chance_is_found_at_its_path_in_any_json(
    raw: bytes,
    other: bytes,
    write: Callable[[bytes], tuple[Kind, str, str]],
    before: str,
    after: str,
    keys: list[str],
) -> None:
    kind, value, text = write(raw)
    if len({*text}) < 6 or text[:6] == write(other)[2][:6] or text[-6:] == write(other)[2][-6:]:
        return
    trace = Trace([wall(), Read(site("chance", 5), "m", 0, kind, (value,))])
    taped, asked = (json.loads(json.dumps(embed(before, one, after, keys))) for one in (write(other)[2], text))
    (difference,) = json_differences(taped, asked)
    found = trace.sources(difference.taped, difference.asked, "m")
    assert [one.site.what for one in found] == ["chance"], (difference, text)


@given(instants, st.integers(0, 9))
def test_a_number_agrees_with_the_instant_that_it_was_cut_or_rounded_from(ns: int, digits: int) -> None:
    assert agrees(ns, f"{ns // 10**9}.{ns % 10**9:09d}"[: 11 + digits] if digits else str(ns // 10**9))
    assert not agrees(ns + 2 * 10**9, f"{ns // 10**9}.{ns % 10**9:09d}"[: 11 + digits] if digits else str(ns // 10**9))


@given(st.lists(st.tuples(st.sampled_from(["int", "str", "float"]), st.text(max_size=8))), st.text(), st.text())
def test_any_reads_and_any_texts_give_an_answer(values: list[tuple[str, str]], taped: str, asked: str) -> None:
    reads = [plain("str" if kind != "int" or not text.isdecimal() else "int", text) for kind, text in values]
    for source in Trace(reads).sources(taped, asked):
        assert source.text in asked
