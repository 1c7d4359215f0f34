"""Where words come from, on small runs in which that is known."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import agentruns
import pytest
from difftapes import Ask, get, read, records, run, say, streamed

from tapeproxy.tapes.chance import chance_streams
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.exchanges import Tape
from tapeproxy.tapes.records import Clock, Request, Value
from tapeproxy.tapes.why import Provenance
from tapeproxy.tapes.whydocuments import told_words, why_document
from tapeproxy.tapes.whyspans import Explained, Span, Wanted

DOC = "Paris is the capital of France\nand a fine city."
ASKS = (
    say("m", "What is the capital, please?", answer="Let me look that up in the encyclopaedia."),
    get("m", "doc?q=x", json.dumps({"text": DOC, "id": "doc-9912388"})),
    streamed("m", f"Tool said: {DOC} Sum up!", "So: Paris is the", " capital of France and a fine", " city, it says."),
    say(
        "m",
        f"Tool said: {DOC} Sum up!",
        "So: Paris is the capital of France and a fine city, it says.",
        "Thanks a lot!",
    ),
)


@pytest.fixture(scope="module")
def tape() -> Tape:
    return run(*ASKS)


def asked(tape: Tape, number: int, path: str | None = None, text: str | None = None) -> list[Explained]:
    return list(Provenance(tape).why(number, Wanted(path, text)).texts)


def sources(text: Explained) -> list[tuple[str, str | None]]:
    return [(span.text, None if span.told is None else told_words(span.told)) for span in text.spans]


def only(text: Explained) -> Span:
    (span,) = (span for span in text.spans if span.told is not None)
    return span


def test_a_tools_answer_in_a_prompt_is_found_with_its_place_in_both(tape: Tape) -> None:
    (text,) = asked(tape, 3, "$.messages[0].content")
    assert sources(text) == [
        ("Tool said: ", None),
        (DOC, "the answer of event 2, $.text"),
        (" Sum up!", None),
    ]
    span = only(text)
    assert text.text[span.start : span.end] == DOC == DOC[span.told_start : span.told_end]


def test_a_streams_answer_is_put_together_and_followed_back_to_where_it_came_in(tape: Tape) -> None:
    (text,) = asked(tape, 4, "$.messages[1].content")
    span = only(text)
    assert span.told is not None
    assert told_words(span.told) == "the answer of event 3, $.choices[0].message.content"
    (came,) = span.came
    assert came.told is not None
    assert (came.text, told_words(came.told)) == (DOC[:47].replace("\n", " ")[:46], "the answer of event 2, $.text")
    assert came.passed == (3, "$.messages[0].content")


def test_without_a_path_only_what_is_new_is_told(tape: Tape) -> None:
    why = Provenance(tape).why(4)
    assert (why.previous, why.fresh, why.whole) == (3, True, True)
    assert [text.place for text in why.texts] == ["$.messages[1].content", "$.messages[2].content"]
    assert sources(why.texts[1]) == [("Thanks a lot!", None)]


def test_a_message_that_is_resent_has_the_sources_of_when_it_came_in(tape: Tape) -> None:
    (text,) = asked(tape, 4, "$.messages[0].content")
    span = only(text)
    assert span.since == 3
    # The answer of event 3 says the same words, but came later.
    assert span.told is not None and span.told.number == 2


def test_what_came_at_the_same_time_is_no_source() -> None:
    words = "words that two of them have in common"
    tape = run(say("m/t0", "Go!", answer=words), say("m/t1", f"Do: {words}"))
    assert Provenance(tape).why(2, Wanted("$.messages[0].content")).texts[0].spans[0].told is None


def test_the_nearest_of_two_is_taken_and_the_other_named() -> None:
    words = "the same words in both of them"
    tape = run(get("m", "a", words), get("m", "b", words), say("m", words))
    span = only(asked(tape, 3, "$.messages[0].content")[0])
    assert span.told is not None
    assert span.told.number == 2
    assert [told.number for told in span.others] == [1]


@pytest.mark.parametrize("wrapped", [json.dumps({"said": DOC}), json.dumps(json.dumps({"said": DOC}))])
def test_json_in_json_is_the_same_words(wrapped: str) -> None:
    tape = run(get("m", "a", json.dumps({"text": DOC})), say("m", wrapped))
    span = only(asked(tape, 2, "$.messages[0].content")[0])
    assert span.told is not None
    assert DOC[span.told_start : span.told_end] == DOC


def test_a_short_value_counts_where_it_is_a_whole_one_or_asked_for() -> None:
    tape = run(get("m", "a", '{"city": "Paris", "type": "city"}'), say("m", "Paris", tag="x Paris y", type="city"))
    assert told_words(only(asked(tape, 2, "$.messages[0].content")[0]).told or pytest.fail()) == (
        "the answer of event 1, $.city"
    )
    (text,) = asked(tape, 2, "$.tag")
    assert text.spans[0].told is None
    assert sources(asked(tape, 2, "$.tag", "Paris")[0]) == [("Paris", "the answer of event 1, $.city")]


def test_values_read_past_the_wire_are_sources_with_their_line() -> None:
    body = "a line of a file that was read"
    value = Value(t=1, lane="m", n=0, what="file", name="notes.txt", where="agent.py:7", content=body.encode())
    late = replace(value, n=1, name="late.txt")
    made = records([say("m", f"See: {body}")], first=[value])
    tape = read([*made[:-1], late, made[-1]])
    span = only(asked(tape, 1, "$.messages[0].content")[0])
    assert told_words(span.told or pytest.fail()) == "file notes.txt at agent.py:7 (m#0)"
    assert not span.others


def test_the_command_line_and_what_nobody_told() -> None:
    tape = run(say("m", "run agent.py", "123e4567-e89b-12d3-a456-426614174000"))
    assert asked(tape, 1, "$.messages[0].content")[0].spans[0].told is None
    document = why_document(Provenance(tape).why(1, Wanted("$.messages[1].content")))
    assert document["texts"][0]["spans"][0]["looks_like"] == "uuid"


def test_urls_and_headers_have_sources_too() -> None:
    tape = run(get("m", "a", '{"id": "ticket-7781-abc"}'), get("m", "b?id=ticket-7781-abc"))
    assert only(asked(tape, 2, "url")[0]).text == "ticket-7781-abc"
    assert asked(tape, 2, "header X-Test")[0].text == "1"


@pytest.mark.parametrize(
    ("number", "wanted", "says"),
    [
        (0, Wanted(), "there is no event 0: they are 1 to 4"),
        (5, Wanted(), "there is no event 5"),
        (4, Wanted("$.mesages[1].content"), r"did you mean: \$.messages\[1\].content"),
        (4, Wanted("$..content"), "names no one place"),
        (4, Wanted("$["), "cannot be read"),
        (4, Wanted("header nope"), "there is no text at header nope"),
        (4, Wanted(None, "not there"), "has no text 'not there'"),
    ],
)
def test_what_is_not_there_is_an_error_that_helps(tape: Tape, number: int, wanted: Wanted, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Provenance(tape).why(number, wanted)


def test_a_selection_is_explained_alone(tape: Tape) -> None:
    (text,) = Provenance(tape).why(3, Wanted("$.messages[0].content", start=11, end=30)).texts
    assert [(span.start, span.end, span.text) for span in text.spans] == [(11, 30, "Paris is the capita")]


def test_answers_that_are_no_text_or_broken_are_no_sources() -> None:
    odd = Ask("m", "https://service.test/x", None, b"\x00\xff" * 40)
    cut = Ask("m", "https://service.test/x", None, b'{"text": "cut here', headers=((b"content-encoding", b"gzip"),))
    (text,) = asked(run(odd, cut, say("m", "cut here and nowhere else")), 3, "$.messages[0].content")
    assert [span.told for span in text.spans] == [None]


def test_a_long_conversation_is_followed_to_its_ends_at_once() -> None:
    asks, said = list[Ask](), list[str]()
    for turn in range(40):
        text = f"Page {turn}: " + " ".join(f"word{turn}x{at}" for at in range(30))
        asks.append(get("m", f"page?n={turn}", json.dumps({"text": text})))
        said.append(f"Tool said: {text}")
        answer = f"I read in {turn} that {text[20:120]}, and no more."
        asks.append(say("m", *said, answer=answer))
        said.append(answer)
    why = Provenance(run(*asks)).why(80, Wanted("$.messages"))
    assert why.whole
    texts = {text.place: text for text in why.texts}
    for turn in range(39):
        (page,) = (span for span in texts[f"$.messages[{2 * turn}].content"].spans if span.told is not None)
        assert (page.told and page.told.number, page.since) == (2 * turn + 1, 2 * turn + 2)
        (answer,) = texts[f"$.messages[{2 * turn + 1}].content"].spans
        assert answer.told and answer.told.number == 2 * turn + 2
        (came,) = answer.came
        assert came.told and came.told.number == 2 * turn + 1
        assert came.passed == (2 * turn + 2, f"$.messages[{2 * turn}].content")


SEED = "5e" * 32
STARTED = replace(agentruns.HEAD, seed=SEED, started_at="2026-01-02T03:04:05.000000Z")


def drawn(lane: str, size: int) -> bytes:
    """What the shim gives to a lane that asks for so many bytes of chance."""
    (stream,) = chance_streams(STARTED, lane, size)
    return stream


@pytest.mark.parametrize("write", [str, lambda made: made.hex, lambda made: f"ticket/{made}?"])
def test_a_uuid_that_a_lane_drew_is_chances(write: Callable[[UUID], str]) -> None:
    made = UUID(bytes=drawn("m/t0", 200)[170:186], version=4)
    asks = records([say("m/t0", write(made)), say("m", write(UUID(int=made.int ^ 1)))])
    span = only(asked(read(asks, STARTED), 1, "$.messages[0].content")[0])
    assert span.told is not None
    assert (span.told.kind, span.told.lane, span.told.n) == ("chance", "m/t0", 170)
    assert told_words(span.told).startswith("chance: ")
    (other,) = asked(read(asks, STARTED), 2, "$.messages[0].content")
    assert [span.told for span in other.spans] == [None]


@pytest.mark.parametrize("text", [f"id_{'aB3' * 9}"[:size] for size in range(16, 28)])
def test_what_only_looks_like_chance_is_the_agents_own(text: str) -> None:
    found = asked(read(records([say("m", text)]), STARTED), 1, "$.messages[0].content")
    assert sources(found[0]) == [(text, None)]


def test_a_token_that_comes_back_in_an_answer_is_followed_to_chance() -> None:
    token = urlsafe_b64encode(drawn("m", 24)).decode()
    made = records([say("m", f"I am {token}", answer=f"Hello {token}!"), say("m", f"You said: Hello {token}!")])
    span = only(asked(read(made, STARTED), 2, "$.messages[0].content")[0])
    assert span.told is not None and span.told.number == 1
    (came,) = (one for one in span.came if one.told is not None)
    assert came.told is not None and (came.told.kind, came.text) == ("chance", token)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-01-02T03:04:06.500007+00:00", "the clock, read 1 of lane m"),
        ("2026-01-02T05:34:06.500007", "the clock, read 1 of lane m"),
        ("2026-01-02 03:04:06", "the clock in that second, read 1 of lane m"),
        ("1767323046.5000072", "the clock, read 1 of lane m"),
        ("1767323046500", "the clock, read 1 of lane m"),
        ("2026-01-02 03:04:07", None),
        ("2026-01-02T03:04:06.500009", None),
        ("2026-01-02 03:04:09", None),
        ("2026-99-02 03:04:06", None),
    ],
)
def test_a_time_is_the_clocks_where_a_lane_read_it(text: str, words: str | None) -> None:
    clocks = [Clock(t=ns, lane="m", n=n, ns=ns) for n, ns in ((0, 10), (1, 1_500_007_000), (4, 4_000_000_000))]
    made = records([say("m", text), say("m", "On.")], first=clocks[:2])
    made = [replace(one, t=2 * 10**9, reads=4) if isinstance(one, Request) else one for one in made]
    tape = read([*made[:-1], clocks[2], made[-1]], STARTED)
    assert [told for _, told in sources(asked(tape, 1, "$.messages[0].content")[0])] == [words]


def test_what_is_fresh_in_each_request_is_what_is_told_of_one(tape: Tape) -> None:
    provenance = Provenance(tape)
    assert [*provenance.each(10_000)] == [provenance.why(number) for number in (1, 2, 3, 4)]
    assert [why.number for why in provenance.each(80)] == [1]
