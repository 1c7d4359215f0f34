"""Tools that reach into clocks, as they work without the shim, and the clock after them as it was before."""

from pathlib import Path

import pytest
from shimruns import Mode, run, with_packages

TIME_MACHINE = """
import datetime, json, time
from time import time as kept
from datetime import datetime as kept_type
kept_now = datetime.datetime.now
before = time.time()
import time_machine
assert time.time() >= before, "imported, but not travelling"
utc = datetime.timezone.utc
def look(): return [time.time(), kept(), time.time_ns(), time.gmtime().tm_year, time.strftime("%Y"), str(kept_now()),
    str(kept_type.now(utc)), str(datetime.date.today()), time.clock_gettime(time.CLOCK_REALTIME)]
found = []
with time_machine.travel(datetime.datetime(2001, 2, 3, 4, 5, tzinfo=utc), tick=False) as traveller:
    found.append(look())
    traveller.shift(60)
    found.append(look())
    with time_machine.travel(datetime.datetime(2002, 2, 3, tzinfo=utc), tick=False): found.append(look())
    found.append(look())
    time.sleep(0.001)
@time_machine.travel(0, tick=False)
def decorated(): return look()
found.append(decorated())
after = [time.time(), kept(), datetime.datetime.now().timestamp(), kept_now().timestamp(), time.monotonic()]
assert before <= after[0] < before + 60 and after[0] <= after[1] and abs(after[2] - after[0]) < 60
print(json.dumps([found, after]))
"""


def test_time_machine(sidecar: Path) -> None:
    python = with_packages("time_machine")
    bare = run(TIME_MACHINE, mode="bare", python=python, sidecar=sidecar)
    recorded = run(TIME_MACHINE, python=python, sidecar=sidecar)
    replayed = run(TIME_MACHINE, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines)
    assert bare.json[0] == recorded.json[0] == replayed.json[0]
    assert recorded.json[1] == replayed.json[1] != bare.json[1]
    assert [note["what"] for note in replayed.of("note")] == ["clock-aside"]


FREEZEGUN = """
import asyncio, datetime, json, time
from time import time as kept
from datetime import datetime as kept_type
before = time.time()
import freezegun
def look():
    return [time.time(), kept(), time.time_ns(), str(time.gmtime()), time.strftime("%c"), str(kept_type.now()),
        str(datetime.datetime.now(datetime.timezone.utc)), str(datetime.date.today()), time.monotonic(),
        time.perf_counter()]
found = []
with freezegun.freeze_time("2012-01-14 03:21:34") as frozen:
    found.append(look())
    frozen.tick(5)
    frozen.tick(datetime.timedelta(days=1))
    found.append(look())
    frozen.move_to("2030-01-01")
    found.append(look())
with freezegun.freeze_time("2012-01-14", real_asyncio=True):
    asyncio.run(asyncio.sleep(0.3))
    found.append(look())
with freezegun.freeze_time("2012-01-14", auto_tick_seconds=15): found.append([time.time(), time.time()])
assert type(kept_type.now()) is datetime.datetime
after = [time.time(), kept(), datetime.datetime.now().timestamp(), time.monotonic()]
assert before <= after[0] < before + 60 and after[0] <= after[1]
asyncio.run(asyncio.sleep(0.01))
print(json.dumps([found, after]))
"""


def test_freezegun(sidecar: Path) -> None:
    python = with_packages("freezegun")
    bare = run(FREEZEGUN, mode="bare", python=python, sidecar=sidecar)
    recorded = run(FREEZEGUN, python=python, sidecar=sidecar)
    replayed = run(FREEZEGUN, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines)
    assert bare.json[0] == recorded.json[0] == replayed.json[0]
    assert recorded.json[1] == replayed.json[1] != bare.json[1]
    assert not replayed.of("note")


PICKLERS = """
import sys, {module} as pickler
from datetime import date, datetime
from time import localtime, monotonic, sleep, time
for function in (time, monotonic, sleep, localtime, datetime.now, datetime.utcnow, date.today):
    assert pickler.loads(pickler.dumps(function)) == function, function
class Mine:
    def method(self): return self.kept
    kept = 5
captured = pickler.loads(pickler.dumps(lambda: [time(), monotonic(), datetime.now(), sleep(0), Mine().method()]))()
assert len(captured) == 5 and captured[4] == 5
assert pickler.loads(pickler.dumps(Mine().method))() == 5
"""


@pytest.mark.parametrize("module", ["cloudpickle", "dill"])
@pytest.mark.parametrize("mode", ["record", "replay"])
def test_picklers(module: str, mode: Mode, sidecar: Path) -> None:
    python = with_packages(module)
    done = run(PICKLERS.format(module=module), mode=mode, python=python, sidecar=sidecar)
    assert done.returncode == 0, done.stderr
