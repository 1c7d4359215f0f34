"""OpenAI Realtime: a client's events in, the service's events out. Knows no socket; the playbook decides what is said.

Shapes follow https://platform.openai.com/docs/api-reference/realtime-server-events.
"""

import base64
from collections.abc import Iterator
from typing import Final

import orjson

from tapeproxy.testing import openai_responses
from tapeproxy.testing.answers import Playbook, Refusal
from tapeproxy.testing.chance import Chance
from tapeproxy.testing.conversation import AskError, Json, dumps, items_of, mapping_of
from tapeproxy.testing.script import Delivery

NAME: Final = "openai-realtime"
PATH: Final = "/realtime"
PROTOCOL: Final = "realtime"
_SAMPLES: Final = 480
"""Bytes of sound for each piece of what is said: ten milliseconds of 24 kHz PCM."""


class Session:
    """One session: `begin` and `hear` give the events that the service sends, each as the JSON text of a message.

    `delivery` is how what was said last is to travel.
    """

    def __init__(self, playbook: Playbook, chance: Chance, model: str) -> None:
        self.delivery = Delivery()
        self._playbook = playbook
        self._chance = chance
        self._items: list[Json] = []
        self._sound = 0
        self._session: Json = {
            "type": "realtime",
            "object": "realtime.session",
            "id": f"sess_{chance.alnum(24)}",
            "model": model,
            "output_modalities": ["text"],
            "instructions": "",
            "tools": [],
            "tool_choice": "auto",
        }

    def begin(self) -> Iterator[bytes]:
        """What is sent before anything is heard."""
        yield self._event("session.created", session=self._session)

    def hear(self, data: bytes | str) -> Iterator[bytes]:
        """The events that a message brings about."""
        self.delivery = Delivery()
        try:
            event = orjson.loads(data)
        except orjson.JSONDecodeError:
            event = None
        if not isinstance(event, dict):
            yield self._error("invalid_json", "the message is not a JSON object", None)
            return
        match event.get("type"):
            case "session.update":
                self._session |= mapping_of(event.get("session"))
                yield self._event("session.updated", session=self._session)
            case "conversation.item.create":
                yield from self._add({"id": f"item_{self._chance.alnum(20)}", **mapping_of(event.get("item"))})
            case "input_audio_buffer.append":
                self._sound += len(str(event.get("audio", "")))
            case "input_audio_buffer.commit":
                yield from self._commit()
            case "response.create":
                yield from self._respond(event)
            case kind:
                yield self._error("invalid_value", f"Invalid value: {kind!r}.", event.get("event_id"))

    def gap(self) -> float:
        """Seconds before the next event."""
        return self._chance.gap(*self.delivery.gap_ms)

    def _commit(self) -> Iterator[bytes]:
        item = f"item_{self._chance.alnum(20)}"
        yield self._event("input_audio_buffer.committed", item_id=item, previous_item_id=None)
        said = f"{self._sound} characters of sound"
        self._sound = 0
        content = [{"type": "input_text", "text": said}]
        yield from self._add({"id": item, "type": "message", "role": "user", "content": content})

    def _add(self, item: Json) -> Iterator[bytes]:
        self._items.append(item)
        whole = {"object": "realtime.item", "status": "completed", **item}
        for what in ("added", "done"):
            yield self._event(f"conversation.item.{what}", item=whole, previous_item_id=None)

    def _respond(self, event: Json) -> Iterator[bytes]:
        asked = {**self._session, **mapping_of(event.get("response")), "input": self._items}
        try:
            ask = openai_responses.read(asked)
        except AskError as error:
            yield self._error("invalid_request_error", error.what, event.get("event_id"))
            return
        plan = self._playbook.plan(NAME, ask, self._chance)
        self.delivery = plan.delivery
        if isinstance(plan.answer, Refusal):
            why = plan.answer.message or f"the script answers {plan.answer.status}"
            yield self._error("server_error", why, event.get("event_id"))
            return
        composed = openai_responses.compose(ask, plan.answer, self._chance)
        response: Json = {
            "object": "realtime.response",
            "id": composed["id"],
            "status": "in_progress",
            "output": [],
            "output_modalities": asked["output_modalities"],
        }
        yield self._event("response.created", response=response)
        output = [_item(item) for item in items_of(composed["output"])]
        for index, item in enumerate(output):
            yield from self._say(item, index, response)
            self._items.append(item)
        done = {**response, "status": "completed", "output": output, "usage": composed["usage"]}
        yield self._event("response.done", response=done)

    def _say(self, item: Json, index: int, response: Json) -> Iterator[bytes]:
        place = {"response_id": response["id"], "output_index": index}
        begun: Json = {**item, "status": "in_progress"}
        begun.update(content=[]) if "content" in item else begun.update(arguments="")
        yield self._event("response.output_item.added", **place, item=begun)
        place = {**place, "item_id": item["id"]}
        if item["type"] == "function_call":
            arguments = str(item["arguments"])
            for piece in self._chance.split_json(arguments):
                kind = "response.function_call_arguments.delta"
                yield self._event(kind, **place, call_id=item["call_id"], delta=piece)
            kind = "response.function_call_arguments.done"
            yield self._event(kind, **place, call_id=item["call_id"], name=item["name"], arguments=arguments)
        else:
            (part,) = items_of(item["content"])
            yield from self._speak(str(part["text"]), {**place, "content_index": 0}, response)
        yield self._event("response.output_item.done", **{k: v for k, v in place.items() if k != "item_id"}, item=item)

    def _speak(self, text: str, place: Json, response: Json) -> Iterator[bytes]:
        aloud = "audio" in (response["output_modalities"] or ())  # type: ignore[operator]  # what the client sent
        kind = "output_audio_transcript" if aloud else "output_text"
        for piece in self._chance.split_text(text):
            yield self._event(f"response.{kind}.delta", **place, delta=piece)
            if aloud:
                sound = base64.b64encode(self._chance.rng.randbytes(_SAMPLES)).decode()
                yield self._event("response.output_audio.delta", **place, delta=sound)
        if aloud:
            yield self._event("response.output_audio.done", **place)
            yield self._event(f"response.{kind}.done", **place, transcript=text)
        else:
            yield self._event(f"response.{kind}.done", **place, text=text)

    def _error(self, code: str, message: str, about: object) -> bytes:
        error = {"type": "invalid_request_error", "code": code, "message": message, "param": None, "event_id": about}
        return self._event("error", error=error)

    def _event(self, kind: str, **fields: object) -> bytes:
        return dumps({"type": kind, "event_id": f"event_{self._chance.alnum(21)}", **fields}).encode()


def _item(item: Json) -> Json:
    """An item of a response as Realtime has it."""
    if item["type"] == "function_call":
        return {"object": "realtime.item", **item}
    text = "".join(str(part["text"]) for part in items_of(item["content"]))
    return {"object": "realtime.item", **item, "content": [{"type": "output_text", "text": text}]}
