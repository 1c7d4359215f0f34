import json
from dataclasses import replace
from typing import Any

import agentruns
import difftapes
import tapesamples
from difftapes import Ask, get, run, say, streamed

from tapeproxy.tapes.decoder import TapeDecoder
from tapeproxy.tapes.plain import exchange_documents, record_document, run_document, unfolded
from tapeproxy.tapes.records import Exit


def test_records_have_their_bodies_whole() -> None:
    documents = [record_document(entry) for entry in TapeDecoder("x").feed(tapesamples.written())]
    assert [document["k"] for document in documents][:3] == ["head", "request", "response"]
    assert [document["i"] for document in documents] == list(range(len(documents)))
    bodies = [document["body"] for document in documents if document["k"] == "request"]
    assert bodies == ["hello, world", {"b64": "aGVsbG8sIHf/cmxk"}]  # the second is a reference on the tape
    assert not any("h" in document for document in documents)
    json.dumps(documents)


def test_the_run() -> None:
    tape = run(get("m", "a"), code=3)
    assert run_document(tape) == {
        "argv": ["python", "agent.py", "a b"],
        "exit_code": 3,
        "signal": None,
        "exchanges": 1,
    }
    assert run_document(replace(tape, exit=None))["exit_code"] is None
    killed = replace(tape, exit=Exit(t=1, code=None, signal="SIGKILL"))
    assert run_document(killed)["signal"] == "SIGKILL"


def documents(*asks: Ask, **names: str) -> list[Any]:
    return list(exchange_documents(run(*asks, names=names)))


def test_an_exchange() -> None:
    headers = (agentruns.JSON_TYPE, (b"Date", b"now"), (b"Retry-After", b"3"))
    assert documents(get("m", "a", '{"b":1,"a":"x\\ny"}', status=429, headers=headers)) == [
        {
            "lane": "m",
            "request": {"method": "GET", "url": "https://service.test/a"},
            "response": {
                "status": 429,
                "headers": {"content-type": "application/json", "retry-after": "3"},
                "body": {"b": 1, "a": {"lines": ["x", "y"]}},
            },
        }
    ]


def test_an_answer_of_a_model_is_its_message() -> None:
    (found,) = documents(streamed("m", "Hi", "Yes", " sir"))
    assert found["response"] == {"status": 200, "message": {"text": "Yes sir", "stop": "stop"}}
    assert found["request"]["body"]["messages"] == [{"role": "user", "content": "Hi"}]


def test_another_recording_of_the_same_is_the_same_text() -> None:
    ours = documents(say("m", "Hi"), get("m/t0", "a"), get("m/t1", "b"))
    assert ours == documents(get("m/t1", "b"), say("m", "Hi", call_id="other"), get("m/t0", "a"))
    assert [one.get("lane") for one in documents(get(None, "x"), get("m/t10", "a"), get("m/t9", "b"))] == [
        None,
        "m/t9",
        "m/t10",
    ]


def test_what_is_no_text_is_a_digest() -> None:
    (found,) = documents(Ask("m", "https://x.test/", None, b"\xff\x00"))
    assert found["response"]["body"]["bytes"] == 2
    assert len(found["response"]["body"]["blake3"]) == 64


def test_an_exchange_that_did_not_end_well() -> None:
    cut = agentruns.exchange(1, "http://x.test/", how=None)
    (found,) = exchange_documents(difftapes.read(cut))
    assert found["ending"] == "unfinished"
    reset = agentruns.exchange(1, "http://x.test/", status=None, how="reset")
    (found,) = exchange_documents(difftapes.read(reset))
    assert (found["ending"], "response" in found) == ("reset", False)


def test_lines() -> None:
    assert unfolded({"a": ["x\ny", 1, None]}) == {"a": [{"lines": ["x", "y"]}, 1, None]}
