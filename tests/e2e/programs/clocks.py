"""What libraries make of time and chance, here and in a child process."""

import asyncio
import datetime
import subprocess
import sys
import time
import uuid

import orjson
import pydantic


class Model(pydantic.BaseModel):
    made: datetime.datetime = pydantic.Field(default_factory=datetime.datetime.now)


async def nap() -> float:
    start = asyncio.get_running_loop().time()
    await asyncio.sleep(0.05)
    return asyncio.get_running_loop().time() - start


print(datetime.date.today(), time.time_ns())
print(uuid.uuid1(), uuid.uuid4())
print(Model().model_dump_json())
print(orjson.dumps({"now": datetime.datetime.now(datetime.UTC)}).decode())
print(asyncio.run(nap()) >= 0.05)
print(time.monotonic_ns() > 0, flush=True)

child = "import time, uuid; print(time.time_ns()); print(uuid.uuid1())"
subprocess.run([sys.executable, "-c", child], check=True)
