"""What libraries make of time and chance, here and in child processes. Each part is what another clock tool broke."""

import asyncio
import datetime
import json
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time
import uuid
from multiprocessing.connection import Connection

import orjson
import pydantic
import uvloop

GREGORIAN = 0x01B21DD213814000
"""The epoch of uuid1, in 100 ns before 1970."""


class Model(pydantic.BaseModel):
    made: datetime.datetime = pydantic.Field(default_factory=datetime.datetime.now)
    day: datetime.date = pydantic.Field(default_factory=datetime.date.today)


async def waits() -> None:
    """asyncio.sleep came back never (freezegun#437), and uvloop's clock went its own way (freezegun#529)."""
    loop = asyncio.get_running_loop()
    began, wall = loop.time(), time.time()
    await asyncio.sleep(0.3)
    assert 0.29 <= loop.time() - began < 5  # uvloop's clock has whole milliseconds
    assert 0.3 <= time.time() - wall < 5
    try:
        await asyncio.wait_for(asyncio.sleep(9), 0.1)
    except TimeoutError:
        print("waited", type(loop).__module__, time.time(), datetime.datetime.now(datetime.UTC))


def types() -> None:
    """Models could not be made (freezegun#551), and orjson refused a type that was not its own (freezegun#448)."""
    now, today = datetime.datetime.now(), datetime.date.today()
    assert (type(now), type(today)) == (datetime.datetime, datetime.date)
    made = pydantic.create_model("Made", at=(datetime.datetime, now), on=(datetime.date, today))()
    print(Model().model_dump_json(), made.model_dump_json(), Model.model_json_schema()["properties"]["made"]["format"])
    print(pydantic.TypeAdapter(datetime.datetime).validate_python(now), orjson.dumps([now, today]).decode())
    assert pickle.loads(pickle.dumps(now)) == now
    assert json.dumps(today.isoformat())


def identifiers() -> None:
    """uuid1 stayed where the clock had been (freezegun#196)."""
    before = time.time_ns()
    made = [uuid.uuid1() for _ in range(3)]
    stamps = [(one.time - GREGORIAN) * 100 for one in made]
    assert stamps == sorted(set(stamps))
    assert before - 1_000_000 <= stamps[0] <= time.time_ns() + 1_000_000
    print(*made, uuid.uuid4())


def day() -> str:
    return f"{datetime.date.today()} {datetime.datetime.now()} {time.time_ns()}"


def child(pipe: Connection) -> None:
    pipe.send(day())


def children() -> None:
    """Processes had the machine's clock (freezegun#593)."""
    get = multiprocessing.get_context
    for context in (get("fork"), get("spawn"), get("forkserver")):
        here, there = context.Pipe()
        process = context.Process(target=child, args=(there,))
        process.start()
        print(context.get_start_method(), here.recv())
        process.join()
    code = "import datetime, time, uuid; print(datetime.date.today(), time.time_ns(), uuid.uuid1())"
    print(subprocess.check_output([sys.executable, "-c", code], text=True).rstrip())


def in_a_thread() -> None:
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(day()))
    thread.start()
    thread.join()
    print("thread", *said, time.monotonic_ns() > 0)


if __name__ == "__main__":
    asyncio.run(waits())
    uvloop.run(waits())
    types()
    identifiers()
    children()
    in_a_thread()
