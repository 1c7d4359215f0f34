"""Decisions of a replay: positions in a lane, and what counts against the run."""

from dataclasses import replace
from typing import Any

import pytest
from served import KEY, exchange, tape_of

from tapeproxy.proxy.bodyspool import BodySpool
from tapeproxy.proxy.decisions import Asked, Decision
from tapeproxy.proxy.replayer import Replayer
from tapeproxy.tapes.answers import Answer
from tapeproxy.tapes.course import Step
from tapeproxy.tapes.exchanges import Chunk, Exchange
from tapeproxy.tapes.largebodies import LARGE
from tapeproxy.tapes.machine import NOTE, Facts
from tapeproxy.tapes.ownrecords import Asked as OwnAsked
from tapeproxy.tapes.ownrecords import own_records
from tapeproxy.tapes.reading import VERSION
from tapeproxy.tapes.records import Chunks, Headers, Note
from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.rules import parse_rule
from tapeproxy.tapes.violations import Drift, Violation

URL = b"https://api.example.com/"


def replayer(*positions: tuple[str, int, int], by_lane: bool = True) -> Replayer:
    """A replay of equal requests from (lane, n, reads)."""
    exchanges = []
    for lane, n, reads in positions:
        one = exchange(URL.decode(), b"ok")
        one.request = replace(one.request, lane=lane, n=n, reads=reads)
        exchanges.append(one)
    return Replayer(tape_of(exchanges), Redactor(KEY), lambda _: False, lambda _: None, by_lane=by_lane)


def asked(tag: str) -> Asked:
    return Asked(b"GET", URL, ((b"Host", b"api.example.com"), (b"x-tapeproxy-lane", tag.encode())), b"")


def test_a_lane_that_comes_the_same_way_is_served_in_silence() -> None:
    run = replayer(("m", 0, 3), ("m", 1, 5))
    for tag in ("m#0@3", "m#1@5"):
        assert isinstance(run.decide(asked(tag)), Answer)
    assert (run.violations, run.drifts, run.served) == ([], [], 2)


@pytest.mark.parametrize(
    ("tag", "where", "taped", "now"),
    [("m#0@4", "clock reads before it", "3", "4"), ("m#1@3", "number in its lane", "0", "1")],
)
def test_another_position_is_a_drift(tag: str, where: str, taped: str, now: str) -> None:
    run = replayer(("m", 0, 3))
    assert isinstance(run.decide(asked(tag)), Answer)
    (drift,) = run.drifts
    assert isinstance(drift, Drift)
    assert "lane m came another way to the request of exchange 1" in drift.what
    assert [(d.where, d.taped, d.asked) for d in drift.differences] == [(where, taped, now)]


def test_of_each_lane_only_the_first_difference_counts() -> None:
    run = replayer(("m", 0, 0), ("m", 1, 0), ("m/t0", 0, 0))
    for tag in ("m#0@9", "m#1@9", "m/t0#0@9"):
        run.decide(asked(tag))
    assert len(run.drifts) == 2


def test_the_answer_of_another_lane_is_a_violation_that_names_it() -> None:
    run = replayer(("m/t0", 0, 0), ("m/t1", 0, 0))
    run.decide(asked("m/t0#0@0"))
    decision = run.decide(asked("m/t0#1@0"))
    assert isinstance(decision, Violation)
    assert decision.kind == "lane"
    assert "for lane m/t1, but lane m/t0 made it" in decision.what


def test_without_lanes_any_answer_will_do() -> None:
    run = replayer(("m/t0", 0, 0), ("m/t1", 0, 0), by_lane=False)
    for tag in ("m/t0#0@0", "m/t0#1@0"):
        assert isinstance(run.decide(asked(tag)), Answer)
    assert run.violations == []


def test_a_tag_that_makes_no_sense_is_no_tag() -> None:
    run = replayer(("m", 0, 3))
    assert isinstance(run.decide(asked("nonsense")), Answer)
    assert run.drifts == []


def test_a_response_that_is_not_http_is_not_served() -> None:
    one = exchange(URL.decode(), b"ok", headers=((b"a", b"b\r\nc: d"),))
    run = Replayer(tape_of([one]), Redactor(KEY), lambda _: False, lambda _: None)
    decision = run.decide(asked("m#0@0"))
    assert isinstance(decision, Violation)
    assert (decision.kind, run.served) == ("malformed", 0)
    assert "the tape holds a response that is not HTTP: of exchange 1, its header 'a'" in decision.what


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"error": {"message": "not on the tape\\n  request: GET x"}}', ": not on the tape"),
        (b'{"error": {"message": 1}}', ""),
        (b"[]", ""),
        (b"{", ""),
    ],
)
def test_what_was_refused_when_it_was_taped_is_a_violation_once_more(body: bytes, why: str) -> None:
    """A fork that may not ask something answers 470 itself; its tape must not look as if a server had."""
    one = exchange(URL.decode(), body, status=470)
    one.request = replace(one.request, lane="m", n=0, reads=3, source="refused")
    run = Replayer(tape_of([one]), Redactor(KEY), lambda _: False, lambda _: None)
    answer = run.decide(asked("m#0@3"))
    assert isinstance(answer, Answer)
    assert b"".join(part.data for part in answer.parts).endswith(body)
    (found,) = run.violations
    assert found.kind == "refused"
    assert found.what == f"exchange 1 of the tape was refused when it was taped, and no server answered it{why}"


def test_what_a_violation_says_of_a_long_request_is_short() -> None:
    run = Replayer(tape_of([exchange(URL.decode(), b"ok")]), Redactor(KEY), lambda _: False, lambda _: None)
    long = URL + b"a" * 100_000 + b"?q=" + b"b" * 100_000
    decision = run.decide(Asked(b"GET", long, (), b""))
    assert isinstance(decision, Violation)
    assert decision.request.startswith("GET https://api.example.com/aaa")
    assert len(decision.request) == 2048
    assert max(len(decision.to_text()), len(decision.to_answer())) < 20_000


def test_of_many_differences_only_the_first_are_told() -> None:
    one = exchange(URL.decode(), b"ok", method=b"POST", body=b"[" + b"1," * 5000 + b"1]")
    run = Replayer(tape_of([one]), Redactor(KEY), lambda _: False, lambda _: None)
    headers = ((b"content-type", b"application/json"),)
    decision = run.decide(Asked(b"POST", URL, headers, b"[" + b"2," * 5000 + b"2]"))
    assert isinstance(decision, Violation)
    assert decision.explanation is not None
    assert len(decision.explanation.differences) == 100


# --- rules and other machines ---------------------------------------------------------------------------------------

TEXT = ((b"content-type", b"text/plain"),)


def ruled(body: bytes, **fields: Any) -> Replayer:
    """A replay of one request with this body, on a tape of the present version."""
    one = exchange(URL.decode(), b"ok", method=b"POST", body=body)
    one.request = replace(one.request, headers=fields.pop("headers", TEXT))
    tape = tape_of([one])
    tape.head = replace(tape.head, rules={"matching": VERSION, "user": fields.pop("taped", [])})
    tape.notes = [Note(t=0, what=NOTE, data=fields.pop("facts", {}))]
    return Replayer(tape, Redactor(KEY), lambda _: False, lambda _: None, **fields)


def post(run: Replayer, body: bytes, headers: Headers = TEXT) -> bool:
    """Whether there was an answer."""
    return isinstance(run.decide(Asked(b"POST", URL, headers, body)), Answer)


def test_the_tape_s_rules_hold_unless_they_are_left_out_and_others_are_added() -> None:
    number, letter = parse_rule("rewrite-body", r"\d+=N"), parse_rule("rewrite-body", "[a-z]=l")
    assert post(ruled(b"a 1", taped=[str(number)]), b"a 22")
    assert not post(ruled(b"a 1", taped=[str(number)], taped_rules=False), b"a 22")
    assert not post(ruled(b"a 1", taped=[str(number)]), b"b 22")
    run = ruled(b"a 1", taped=[str(number)], rules=(letter, parse_rule("ignore-query", "q")))
    assert post(run, b"b 22")
    assert {str(rule) for rule in run.reading.rules.used} == {str(number), str(letter)}


def test_a_header_that_a_rule_matches_may_be_a_secret() -> None:
    def signed(value: bytes) -> Headers:
        return (*TEXT, (b"Authorization", b"Bearer " + value))

    taped = Redactor(bytes(32)).headers(signed(b"the-key-it-was-recorded-with"))
    rules = (parse_rule("match-header", "authorization"),)
    assert post(ruled(b"x", headers=taped, rules=rules), b"x", signed(b"another-key"))
    assert not post(ruled(b"x", headers=taped, rules=rules), b"x")


def test_another_machine_s_facts_do_not_defeat_a_match() -> None:
    facts = {"cwd": ["/home/ada/proj"], "python": ["3.12.1"]}
    here: Facts = {"cwd": ("/builds/x",), "home": ("/root",), "python": ("3.14.0",)}
    taped = b"in /home/ada/proj with Python/3.12.1"
    assert post(ruled(taped, facts=facts, here=here), b"in /builds/x with Python/3.14.0")
    assert post(ruled(taped, facts=facts, here=here), taped)
    assert not post(ruled(taped, facts=facts, here=here), b"in /builds/y with Python/3.14.0")
    assert not post(ruled(taped, facts=facts, here=here), b"in /root with Python/3.14.0")
    run = ruled(taped, facts=facts, here=here)
    run.learn("3.11.7")
    assert post(run, b"in /builds/x with Python/3.11.7")


@pytest.mark.parametrize("taped", [["nonsense"], [1]])
def test_a_tape_whose_rules_cannot_be_read_is_refused(taped: list[Any]) -> None:
    with pytest.raises(ValueError, match="rule in the head cannot be read"):
        ruled(b"x", taped=taped)


BINARY = ((b"content-type", b"application/octet-stream"),)
PARTS = ((b"content-type", b"multipart/form-data; boundary=%b"),)
LONG = b"0123456789abcdef" * ((LARGE >> 4) + 1)
LOOK = b" sk-" + b"proj-AbCdEfGhIj0123456789KlMnOpQrSt "


def large(headers: Headers, *uploads: bytes) -> Exchange:
    one = exchange(URL.decode(), b"ok", method=b"POST")
    one.request = replace(one.request, headers=headers)
    redactor = Redactor(KEY)
    one.uploads = [Chunk(0, data) for data in redactor.pieces(headers, uploads)]
    return one


def posted(run: Replayer, headers: Headers, *pieces: bytes) -> Decision:
    spool = BodySpool(headers)
    for piece in pieces:
        spool.take(piece)
    return run.decide(Asked(b"POST", URL, headers, spool.finish()))


@pytest.mark.parametrize(
    ("taped", "now", "sent", "said"),
    [
        (BINARY, BINARY, (LONG, b"end"), (LONG[:7], LONG[7:] + b"end")),
        (BINARY, BINARY, (LONG, LOOK), (LONG + LOOK[:9], LOOK[9:])),
        (
            ((PARTS[0][0], PARTS[0][1] % b"abc"),),
            ((PARTS[0][0], PARTS[0][1] % b"another"),),
            (b"--abc\r\n\r\n", LONG, b"\r\n--abc--"),
            (b"--another\r\n\r\n", LONG, b"\r\n--another--"),
        ),
    ],
    ids=["the same bytes", "a secret", "multipart"],
)
def test_a_large_upload_gets_its_answer(
    taped: Headers, now: Headers, sent: tuple[bytes, ...], said: tuple[bytes, ...]
) -> None:
    tape = tape_of([large(taped, *sent)])
    seen: list[Step] = []
    run = Replayer(tape, Redactor(KEY), lambda _: False, lambda _: None, witness=seen.append)
    assert isinstance(posted(run, now, *said), Answer)
    assert isinstance(posted(run, now, *said), Violation)
    # A fork and the interpreter have it in memory.
    again = Replayer(tape, Redactor(KEY), lambda _: False, lambda _: None)
    assert isinstance(again.decide(Asked(b"POST", URL, now, b"".join(said))), Answer)
    own = own_records([OwnAsked(0, seen[0])], lambda number: tape.exchanges[number - 1])
    uploads = [data for one in own if isinstance(one, Chunks) and one.to == "server" for _, data in one.parts]
    assert uploads == [chunk.data for chunk in tape.exchanges[0].uploads]


@pytest.mark.parametrize("rule", [(), (("rewrite-body", "[0-9a-f]+=x"),), (("ignore-json", "$"),)], ids=str)
def test_a_large_upload_that_differs_is_a_violation_that_says_where(
    rule: tuple[tuple[str, str], ...],
) -> None:
    rules = tuple(parse_rule(*words) for words in rule)
    run = Replayer(tape_of([large(BINARY, LONG, b"one")]), Redactor(KEY), lambda _: False, lambda _: None, rules=rules)
    decision = posted(run, BINARY, LONG, b"two " + LOOK)
    assert isinstance(decision, Violation)
    assert decision.explanation is not None
    sizes, place = decision.explanation.differences
    assert sizes.where == "body, too large to be compared by value"
    assert f"a body of {len(LONG) + 3} bytes with BLAKE3" in (sizes.taped or "")
    assert (place.where, place.taped) == (f"body, from byte {len(LONG)} on", "'one'")
    assert (place.asked or "").startswith("'two  tpx")


def test_a_body_that_is_not_large_is_told_from_a_large_one() -> None:
    run = Replayer(tape_of([large(BINARY, LONG, b"one")]), Redactor(KEY), lambda _: False, lambda _: None)
    decision = posted(run, BINARY, b"small")
    assert isinstance(decision, Violation)
    assert decision.explanation is not None
    assert [one.asked for one in decision.explanation.differences] == ["a body of 5 bytes (bytes)"]


GRPC = ((b"content-type", b"application/grpc"),)
HELLO = b"\0\0\0\0\5hello"


@pytest.mark.parametrize("ended", [True, False])
def test_a_call_that_the_tape_broke_off_before_its_answer_is_not_waited_for(ended: bool) -> None:
    one = exchange(URL.decode(), b"ok", method=b"POST")
    one.request, one.response, one.chunks = replace(one.request, headers=GRPC), None, []
    one.uploads = [Chunk(0, HELLO)]
    one.end = one.end if ended else None
    run = Replayer(tape_of([one]), Redactor(KEY), lambda _: False, lambda _: None)
    found = run.join(Asked(b"POST", URL, GRPC, HELLO), HELLO)
    assert (found is None) == ended
