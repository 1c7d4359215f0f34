"""Values become JSON and come back as they were; what can't come back is refused with its place."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import pathlib
import sys
import threading
import uuid
import zoneinfo
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shimruns import everywhere, run


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntFlag):
    LOW = 1


class Point(NamedTuple):
    x: int
    y: object


@dataclasses.dataclass(frozen=True)
class Page:
    title: str
    parts: tuple[Point, ...] = ()
    left_out: str = dataclasses.field(default="", init=False)


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int = 1


class RefusedError(RuntimeError):
    """Wants more than its text, and says something else than its arguments."""

    def __init__(self, text: str, *, status: int) -> None:
        super().__init__(text)
        self.status = status

    def __str__(self) -> str:
        return f"{self.status}: {self.args[0]}"


class SpokenError(Exception):
    def __init__(self, body: object) -> None:
        super().__init__("spoken")
        self._body = body

    def __str__(self) -> str:
        return f"said {self._body}"


@pytest.fixture
def forms(inject: Callable[[str], Any]) -> Any:
    return inject("jsonforms")


UTC = datetime.UTC
VALUES = [
    None,
    True,
    "é\ud800\x00",
    1 << 70,
    -(1 << 60),
    math.inf,
    1 + 2j,
    {"$": "float", "is": "1"},
    {1: "a", (2, "b"): [None]},
    {},
    (),
    [(), {"a": ({"b"},)}],
    {1, "1", (1,)},
    frozenset({b"a"}),
    b"\xff\x00",
    bytearray(b"text"),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
    datetime.datetime(2026, 1, 2, tzinfo=UTC),
    datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))),
    datetime.datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1),
    datetime.date(2026, 1, 2),
    datetime.time(1, 2, 3, 4),
    datetime.timedelta(days=-1, microseconds=1),
    decimal.Decimal("1.10"),
    fractions.Fraction(1, 3),
    uuid.UUID(int=5),
    pathlib.Path("/a/b"),
    pathlib.PureWindowsPath("C:/a"),
    Colour.RED,
    Level.LOW,
    Point(1, [2]),
    Page("a", (Point(1, None),)),
    Slotted(4),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_was(value: Any, forms: Any) -> None:
    text = forms.dump(value)
    text.encode()
    back = forms.load(text)
    assert (back, type(back)) == (value, type(value))
    assert forms.dump(back) == text
    if isinstance(value, datetime.datetime):
        assert (back.tzinfo, back.fold) == (value.tzinfo, value.fold)


def test_not_a_number_comes_back(forms: Any) -> None:
    assert math.isnan(forms.load(forms.dump([math.nan]))[0])


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(value=plain)
def test_whatever_is_plain_comes_back(value: Any) -> None:
    forms = _forms()
    assert forms.load(forms.dump(value)) == value


def _forms() -> Any:
    """For hypothesis, which has fixtures of functions last for all examples."""
    from importlib import import_module

    from tapeproxy.shim import INJECT

    sys.path.insert(0, str(INJECT))
    try:
        return import_module("_tapeproxy.jsonforms")
    finally:
        sys.path.remove(str(INJECT))


def _generator() -> Iterator[int]:
    yield 1


def _local() -> Any:
    @dataclasses.dataclass
    class Local:
        a: int = 1

    return Local()


_looped: list[Any] = []
_looped.append(_looped)


@pytest.mark.parametrize(
    "value, said",
    [
        (threading.Lock(), "it is a lock"),
        ({"a": [1, object()]}, "its ['a'][1] is a object"),
        (Page("a", (Point(1, _generator()),)), "its .parts[0][1] is a generator"),
        (_local(), "it is a _local.<locals>.Local"),
        (collections.OrderedDict(), "it is a OrderedDict"),
        (_looped, "nested more than 100 deep, or in itself"),
        (lambda: 1, "is a function"),
        (Page, "is a type"),
    ],
)
def test_what_has_no_form_is_refused_with_its_place_and_told_by_its_type(value: Any, said: str, forms: Any) -> None:
    with pytest.raises(TypeError) as caught:
        forms.dump(value)
    assert said in str(caught.value)
    assert isinstance(json.loads(forms.dump_loosely(value)), dict | list)


ERRORS = [
    ValueError("a", 1),
    KeyError("k"),
    OSError(2, "gone", "/a"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    StopIteration(5),
    RefusedError("no", status=429),
    SpokenError({"a": 1}),
    SystemExit(3),
    ExceptionGroup("two", [ValueError(1), RefusedError("x", status=1)]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_exception_comes_back_with_type_text_and_attributes(error: BaseException, forms: Any) -> None:
    back = forms.load_error(forms.dump_error(error), RuntimeError)
    assert (type(back), str(back)) == (type(error), str(error))
    assert back.__dict__ == error.__dict__
    if not isinstance(error, ExceptionGroup):
        assert back.args == error.args


def test_an_exception_with_parts_that_have_no_form_says_the_same(forms: Any) -> None:
    error = SpokenError(threading.Lock())
    text = str(error)
    back = forms.load_error(forms.dump_error(error), RuntimeError)
    assert isinstance(back, SpokenError)
    assert str(back) == text


def test_exceptions_of_types_that_are_not_loaded_are_of_the_given_one(forms: Any) -> None:
    back = forms.load_error(
        '{"type":"nowhere.at.all:Odd","text":"it is odd","args":[1],"state":{"code":7}}', RuntimeError
    )
    assert (type(back).__name__, str(back), isinstance(back, RuntimeError), back.code) == ("Odd", "it is odd", True, 7)
    assert "nowhere" not in sys.modules


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"$":"what"}',
        '{"$":"data"}',
        '{"$":"data","type":"os:system","fields":{}}',
        '{"$":"data","type":"nowhere:X","fields":{}}',
        '{"$":"enum","type":"builtins:int","is":"x"}',
        '{"$":"named","type":"builtins:list","items":[]}',
        '{"$":"model","type":"builtins:object","fields":{}}',
        '{"$":"set","items":[[]]}',
        '{"$":"bytes","b64":5}',
        '{"$":"decimal","is":"x"}',
        '{"$":"datetime","is":"x"}',
        '{"$":"datetime","is":"2026-01-01T00:00:00","zone":"No/Where"}',
        '{"$":5}',
        '{"$":["a"]}',
    ],
)
def test_a_broken_form_is_a_value_error(text: str, forms: Any) -> None:
    with pytest.raises(ValueError):
        forms.load(text)


def test_a_pydantic_model_comes_back(forms: Any) -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", __module__=__name__, a=(int, 1), at=(datetime.datetime, ...))
    vars(sys.modules[__name__])["Model"] = model  # as if it stood in the module
    value = model(at=datetime.datetime(2026, 1, 2))
    assert forms.load(forms.dump(value)) == value


ROUND = """
import sys; sys.path.insert(0, "INJECT")
from _tapeproxy import jsonforms
import dataclasses, datetime, uuid
@dataclasses.dataclass
class Hit: a: int; b: object = None
values = [Hit(1, Hit(2)), datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), {uuid.UUID(int=1): b"\\xff"}]
assert jsonforms.load(jsonforms.dump(values)) == values
print("same")
"""


@everywhere
def test_values_come_back_on_every_interpreter(python: Any, sidecar: Any) -> None:
    from tapeproxy.shim import INJECT

    done = run(ROUND.replace("INJECT", str(INJECT)), mode="bare", python=python, sidecar=sidecar)
    assert done.stdout == "same\n", done.stderr
