"""The clocks in `datetime`: taped like time.time, in types that are still the same types."""

import textwrap
from pathlib import Path

import pytest
from shimruns import everywhere, run, with_packages

READS = {
    "now": "datetime.now()",
    "now(utc)": "datetime.now(timezone.utc)",
    "now(tz=...)": "datetime.now(tz=timezone(timedelta(hours=5)))",
    "utcnow": "datetime.utcnow()",
    "today": "datetime.today()",
    "a subclass": "Mine.now()",
    "a subclass, with a zone": "Mine.now(timezone.utc)",
    "a subclass, utcnow": "Mine.utcnow()",
    "a subclass, today": "Mine.today()",
    "an instance": "datetime(2001, 1, 1).now()",
}
PROGRAM = """
import json
from datetime import date, datetime, timedelta, timezone
class Mine(datetime):
    def __new__(cls, *args, **kwargs): return super().__new__(cls, *args, **kwargs)
print(json.dumps({"date": str(date.today()), """
PROGRAM += "".join(f"{name!r}: str({read}),\n" for name, read in READS.items()) + "}))"


@everywhere
def test_every_method(python: Path, sidecar: Path) -> None:
    bare = [run(PROGRAM, mode="bare", python=python, sidecar=sidecar).json for _ in range(2)]
    recorded = run(PROGRAM, python=python, sidecar=sidecar)
    replayed = run(PROGRAM, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines)
    assert replayed.json == recorded.json
    assert not replayed.of("note")
    for name in READS:
        assert bare[0][name] != bare[1][name], name  # or the test could not fail


LOOKS = """
import copy, datetime as module, inspect, json, pickle
from datetime import date, datetime, timezone, timedelta
class Mine(datetime):
    def __new__(cls, *args, **kwargs): return super().__new__(cls, *args, **kwargs)
class Bad(module.tzinfo):
    def fromutc(self, dt): raise RuntimeError("no")
class Holder: clock = datetime.now  # binds to nothing
assert type(Holder().clock()) is datetime
assert type(datetime.now()) is type(datetime.utcnow()) is type(datetime.today()) is datetime
assert type(date.today()) is date and type(Mine.today()) is type(Mine.now()) is type(Mine.utcnow()) is Mine
assert datetime.now().tzinfo is None and datetime.utcnow().tzinfo is None
assert datetime.now(timezone.utc).tzinfo is timezone.utc
for method in (datetime.now, datetime.utcnow, datetime.today, date.today, Mine.now):
    assert pickle.loads(pickle.dumps(method)) == method
    assert copy.copy(method) == copy.deepcopy(method) == method
    assert method.__doc__ and method.__self__ in (datetime, date, Mine)
    assert method.__name__ in ("now", "utcnow", "today")
moment = datetime.now(timezone.utc)
assert pickle.loads(pickle.dumps(moment)) == moment and datetime.fromisoformat(moment.isoformat()) == moment
assert str(inspect.signature(datetime.now)) == "(tz=None)"
def outcome(call):
    try: return repr(type(call()))
    except Exception as error: return [type(error).__name__, str(error)]
print(json.dumps([outcome(call) for call in (
    lambda: datetime.now(5), lambda: datetime.now("UTC"), lambda: datetime.now(Bad()), lambda: datetime.now(tz=None))]))
"""


@everywhere
def test_looks_and_errors(python: Path, sidecar: Path) -> None:
    bare = run(LOOKS, mode="bare", python=python, sidecar=sidecar)
    for mode in ("record", "replay"):
        assert run(LOOKS, mode=mode, python=python, sidecar=sidecar).json == bare.json


@everywhere
def test_the_deprecation_of_utcnow_is_said_as_ever(python: Path, sidecar: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import datetime\n\n\ndef f():\n    return datetime.datetime.utcnow()\n\n\nf()\n")
    code = f"import runpy, warnings; warnings.simplefilter('always'); runpy.run_path({str(script)!r})"
    bare = run(code, mode="bare", python=python, sidecar=sidecar)
    assert run(code, python=python, sidecar=sidecar).stderr == bare.stderr
    version = run("import sys; print(sys.version_info[1])", mode="bare", python=python, sidecar=sidecar).json
    assert ("utcnow" in bare.stderr) == (version >= 12)


EXACT = """
import random, sys
from datetime import datetime, timedelta, timezone
datetimes = sys.modules["_tapeproxy.datetimes"]
draw = random.Random(1)
zone = timezone(timedelta(hours=-3, minutes=7))
for _ in range(3000):
    micros = draw.randrange(10**15, 8 * 10**15)  # 2001 to 2223
    datetimes._read = lambda: micros * 1000 + draw.randrange(1000)
    exact = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    assert datetime.utcnow() == exact == datetime.now(), micros
    assert datetime.now(zone) == exact.replace(tzinfo=timezone.utc)
"""


@everywhere
def test_microseconds_are_exact(python: Path, sidecar: Path) -> None:
    done = run("import warnings; warnings.simplefilter('ignore')\n" + EXACT, python=python, sidecar=sidecar)
    assert done.returncode == 0, done.stderr


ZONE = """
import json, time
from datetime import date, datetime, timezone
local, utc, stamp = datetime.now(), datetime.now(timezone.utc), time.time()
assert abs(datetime.fromtimestamp(stamp) - local).total_seconds() < 60
assert abs(local.astimezone() - utc).total_seconds() < 60
assert date.today() == local.date() == date.fromtimestamp(stamp)
print(json.dumps([str(local), str(utc), time.localtime().tm_zone, list(time.localtime(1700000000))]))
"""


@everywhere
@pytest.mark.parametrize("zone", ["America/St_Johns", "Pacific/Kiritimati"])
def test_time_zones(zone: str, python: Path, sidecar: Path) -> None:
    recorded = run(ZONE, python=python, sidecar=sidecar, extra={"TZ": zone})
    assert recorded.json[2] != "UTC"
    replayed = run(ZONE, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines, extra={"TZ": zone})
    assert replayed.json == recorded.json


USERS = {
    "pydantic": """
        class Model(pydantic.BaseModel):
            made: datetime = pydantic.Field(default_factory=datetime.now)
            day: date = pydantic.Field(default_factory=date.today)
        model = Model()
        assert Model.model_validate_json(model.model_dump_json()) == model
        print(model)
    """,
    "orjson": "print(orjson.dumps([datetime.now(), date.today(), datetime.now(timezone.utc)]))",
    "arrow": "print(arrow.utcnow(), arrow.now('Asia/Tokyo'), arrow.get(datetime.now()))",
    "pendulum": "print(pendulum.now('UTC'), pendulum.today('UTC'), pendulum.now('Asia/Tokyo'))",
    "botocore": """
        from botocore import auth, awsrequest, credentials
        request = awsrequest.AWSRequest("GET", "https://bedrock-runtime.us-east-1.amazonaws.com/model")
        auth.SigV4Auth(credentials.Credentials("key", "secret"), "bedrock", "us-east-1").add_auth(request)
        print(dict(request.headers), datetime.now())
    """,
    "dateutil": "import dateutil.tz; print(datetime.now(dateutil.tz.gettz('Asia/Tokyo')))",
}


@pytest.mark.parametrize("package", USERS)
def test_users_of_datetime(package: str, sidecar: Path) -> None:
    python = with_packages(package)
    code = f"import {package}\nfrom datetime import date, datetime, timezone\n" + textwrap.dedent(USERS[package])
    recorded = run(code, python=python, sidecar=sidecar)
    assert recorded.returncode == 0, recorded.stderr
    assert run(code, python=python, sidecar=sidecar).stdout != recorded.stdout
    assert run(code, mode="replay", python=python, sidecar=sidecar, reads=recorded.lines).stdout == recorded.stdout
