"""Edits as they are written: what each word means, and what is said of those that make no sense."""

import pytest

from tapeproxy.tapes.edits import (
    BodyEdit,
    ClockEdit,
    Edit,
    EnvEdit,
    HeaderEdit,
    JsonEdit,
    LaneSeed,
    ModelEdit,
    RequestEdit,
    StatusEdit,
    SystemEdit,
    TextEdit,
    ToolEdit,
    describe,
    parse_edit,
)
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.jsonedits import Change
from tapeproxy.tapes.jsonpaths import parse_path as path

HEX = "0123456789abcdef" * 4
HOUR = 3600 * 10**9


@pytest.mark.parametrize(
    ("text", "edit", "line"),
    [
        ("$.a=1", JsonEdit(path("$.a"), Change("set", 1)), "set $.a = 1"),
        ("$.a=x y", JsonEdit(path("$.a"), Change("set", "x y")), 'set $.a = "x y"'),
        ('$.a="1"', JsonEdit(path("$.a"), Change("set", "1")), 'set $.a = "1"'),
        ("$.a=", JsonEdit(path("$.a"), Change("set", "")), 'set $.a = ""'),
        ("$.a==b", JsonEdit(path("$.a"), Change("set", "=b")), 'set $.a = "=b"'),
        ("$['a=b'][0]=null", JsonEdit(path("$['a=b'][0]"), Change("set")), 'set $["a=b"][0] = null'),
        ("$.a+={}", JsonEdit(path("$.a"), Change("append", {})), "append $.a += {}".replace("append", "set")),
        ("12:$..a[*]=1", JsonEdit(path("$..a[*]"), Change("set", 1), at=12), "12: set $..a[*] = 1"),
        ("m/t0#3:$.a=1", JsonEdit(path("$.a"), Change("set", 1), at="m/t0#3"), "m/t0#3: set $.a = 1"),
        ("last:delete $.a", JsonEdit(path("$.a"), Change("delete"), at="last"), "last: delete $.a"),
        ("$events[3].a=1", JsonEdit(path("$[3].a"), Change("set", 1), events=True), "set $events[3].a = 1"),
        ("delete 4:$events[3]", JsonEdit(path("$[3]"), Change("delete"), events=True, at=4), "4: delete $events[3]"),
        ("$.a=x#3:y", JsonEdit(path("$.a"), Change("set", "x#3:y")), 'set $.a = "x#3:y"'),
        ("text 10:30 is late", TextEdit("10:30 is late"), 'text "10:30 is late"'),
        ("text 10::30 is late", TextEdit("30 is late", 10), '10: text "30 is late"'),
        ("$text=42", TextEdit("42"), 'text "42"'),
        ('12:$text="a\\nb"', TextEdit("a\nb", 12), '12: text "a\\nb"'),
        ("body @hi", BodyEdit(b"hi"), 'body of 2 bytes: "hi"'),
        ('$body={"a":1}', BodyEdit(b'{"a":1}'), 'body of 7 bytes: "{\\"a\\":1}"'),
        ("status 12:503", StatusEdit(503, 12), "12: status 503"),
        ("$status=503", StatusEdit(503), "status 503"),
        ("header X-A: b: c ", HeaderEdit("X-A", "set", "b: c"), "header X-A: b: c"),
        ("$headers.x-a+=1", HeaderEdit("x-a", "append", "1"), "add header x-a: 1"),
        ("delete $headers['x-a']", HeaderEdit("x-a", "delete"), "delete header x-a"),
        ("request-set $.top_p=1", RequestEdit(path("$.top_p"), Change("set", 1)), "request-set $.top_p = 1"),
        ("request-set 3:$.m+=1", RequestEdit(path("$.m"), Change("append", 1), 3), "3: request-set $.m += 1"),
        ("request-delete $.tools", RequestEdit(path("$.tools"), Change("delete")), "request-delete $.tools"),
        ("system Be 1:1 brief.", SystemEdit("Be 1:1 brief."), 'system "Be 1:1 brief."'),
        ("model llama3:8b", ModelEdit("llama3:8b"), 'model "llama3:8b"'),
        ("model 7:gpt-x", ModelEdit("gpt-x", 7), '7: model "gpt-x"'),
        ("clock +1h", ClockEdit(HOUR), "clock +1h"),
        ("clock -1h30m", ClockEdit(-HOUR * 3 // 2), "clock -90m"),
        ("clock +1.5s", ClockEdit(1500 * 10**6), "clock +1500ms"),
        ("clock 2026-01-02T03:04:05Z", ClockEdit(to="2026-01-02T03:04:05+00:00"), "clock 2026-01-02T03:04:05+00:00"),
        ("lane-seed m/t0=new", LaneSeed("m/t0", None), "lane-seed m/t0 = new"),
        (f"lane-seed m={HEX.upper()}", LaneSeed("m", HEX), f"lane-seed m = {HEX}"),
        ("env A=b=c", EnvEdit("A", "b=c"), 'env A = "b=c"'),
        ("unset A", EnvEdit("A", None), "unset A"),
        ('value m/t0#2={"a": 1}', ToolEdit("m/t0", 2, {"a": 1}), 'value m/t0#2 = {"a":1}'),
    ],
)
def test_an_edit_is_read_and_said_in_a_line(text: str, edit: Edit, line: str) -> None:
    assert parse_edit(text) == edit
    assert describe([edit]) == [line]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no path and none of the words"),
        ("frob 1", "'frob' is no path and none of the words set, delete, text"),
        ("a=1", "'a=1' is no path"),
        ("$.a", "after the path '$.a' comes = or +="),
        ("$.a[-1]=1", r"after the path '$.a' comes = or +=, but here is '[-1]=1'"),
        ("$.a[1:2]=1", "but here is '[1:2]=1'"),
        ("delete $.a=1", "cannot be read from '=1' on"),
        ("set a=1", "a path begins with $"),
        ("$event[0]=1", "$event is no root of a path: there are $, $events, $headers, $text"),
        ("$status+=1", "$status can only be set"),
        ("delete $text", "$text can only be set"),
        ("$text.a=1", "$text can only be set, and whole"),
        ("$headers=1", "a header is named as in $headers.retry-after"),
        ("$headers['a b']=1", "a header is named as"),
        ("status 99", "a number from 200 to 999"),
        ("status abc", "a number from 200 to 999"),
        ("header x", "NAME: VALUE"),
        ("header x: a\nb", "one line"),
        ("$headers.x=😀", "one line of ISO-8859-1"),
        ("body FILE", "@TEXT"),
        ("request-set $events[0]=1", "of a request the JSON body"),
        ("request-set $status=300", "of a request the JSON body"),
        ("model ", "a model has a name"),
        ("clock 1h", "a clock is given as +1h"),
        ("clock +1y", "a clock is given as +1h"),
        ("clock +40000d", "a hundred years"),
        ("clock 2026-01-02T03:04:05", "no time zone"),
        ("lane-seed m", "LANE=HEX"),
        ("lane-seed m=12", "64 hex digits, or new"),
        ("env A", "NAME=VALUE"),
        ("value m=1", "LANE#N=JSON"),
        ("value m#1=x", "not JSON: 'x'; a text stands in quotes"),
        ("12:clock +1h", "it names no exchange"),
        ("text \udc80", "not UTF-8"),
        ("env A=\udc80", "not UTF-8"),
        ("delete $['\udc80']", "not UTF-8"),
    ],
)
def test_what_makes_no_sense(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_edit(text)
    assert said in str(caught.value)
