"""Facts of a machine: where they count, in which forms, and that nothing else is touched."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.machine import NOTE, SHORTEST, Facts, Noticed, facts_of, forms, hide_ports, marks, usable
from tapeproxy.tapes.records import Head, Note

ADA: Facts = {
    "cwd": ("/home/ada/proj",),
    "home": ("/home/ada",),
    "tmpdir": ("/var/folders/x1",),
    "hostname": ("ada-laptop",),
    "platform": ("Linux-6.1.0-18-amd64-x86_64-with-glibc2.36",),
    "release": ("6.1.0-18-amd64",),
    "python": ("3.12.1",),
}
CI: Facts = {
    "cwd": ("/builds/team/proj",),
    "home": ("/root",),
    "tmpdir": ("/tmp",),
    "hostname": ("runner-7f",),
    "platform": ("Linux-5.15.0-x86_64-with-glibc2.31",),
    "release": ("5.15.0",),
    "python": ("3.13.0",),
}
BOTH = marks(ADA, CI)
PAIRS = [
    ("in /home/ada/proj.", "in /builds/team/proj."),
    ("/home/ada/proj/a.py:3", "/builds/team/proj/a.py:3"),
    ("/home/ada/.cache", "/root/.cache"),
    ("file:///home/ada/x", "file:///root/x"),
    ("HOME=/home/ada\nTMPDIR=/var/folders/x1", "HOME=/root\nTMPDIR=/tmp"),
    ("ada@ada-laptop:~$", "ada@runner-7f:~$"),
    ("Linux-6.1.0-18-amd64-x86_64-with-glibc2.36", "Linux-5.15.0-x86_64-with-glibc2.31"),
    ("Linux 6.1.0-18-amd64", "Linux 5.15.0"),
    ("Python/3.12.1 (x)", "Python/3.13.0 (x)"),
    ("Working directory:\n/home/ada/proj\n", "Working directory:\n/builds/team/proj\n"),
]


@pytest.mark.parametrize(("taped", "asked"), PAIRS)
@pytest.mark.parametrize("write", [str, json.dumps, lambda text: json.dumps({"args": json.dumps({"x": text})})])
def test_what_two_machines_say_of_themselves_is_the_same(taped: str, asked: str, write: Callable[[str], str]) -> None:
    assert taped != asked
    assert BOTH(write(taped).encode()) == BOTH(write(asked).encode())


@pytest.mark.parametrize(
    "text",
    [
        "/home/adam",
        "/home/ada-old",
        "/home/ada.bak",
        "/mnt/home/ada",
        "./root",
        "/rooted",
        "ada-laptop2",
        "my-ada-laptop",
        "ada-laptop.example.com",
        "13.12.1",
        "3.12.1.4",
        "3.12.10",
        "v3.12.1",
        "/homé/ada",
        "/home/adaé",
    ],
)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert BOTH(text.encode()) == text.encode()


def test_windows_paths() -> None:
    windows = marks({"cwd": ("C:\\Users\\Ada L\\proj",)}, CI)
    for text in ("C:\\Users\\Ada L\\proj\\a.py", "C:/Users/Ada L/proj/a.py", "file:///C:/Users/Ada%20L/proj"):
        for written in (text, json.dumps(text), json.dumps(json.dumps(text))):
            assert b"<cwd>" in windows(written.encode()), written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("/home/ada", b"/home/ada \\/home\\/ada %2Fhome%2Fada"),
        ("/home/zoë b", b"/home/zo\xc3\xab b /home/zo\\u00eb b /home/zo%C3%AB%20b %2Fhome%2Fzo%C3%AB%20b"),
        ("/home/\U0001f600", b"/home/\\ud83d\\ude00"),
    ],
)
def test_the_forms_of_a_text(text: str, written: bytes) -> None:
    assert all(any(form in piece for form in forms(text)) for piece in [written])
    found = marks({"home": (text,)}, CI)(written)
    assert found.split() == [b"<home>"] * len(found.split())


def test_agreeing_machines_mark_nothing() -> None:
    assert not marks(ADA, ADA)
    assert not marks({"cwd": ("/a/b",)}, {"cwd": ("/a/b", "/link/b")})
    assert not marks({}, CI)
    assert marks({"python": ("3.12.1",)}, {"python": ("3.12.1", "3.13.0")})


def test_a_text_that_is_two_facts_makes_them_one() -> None:
    at_home = marks({"cwd": ("/home/ada",), "home": ("/home/ada",)}, {"cwd": ("/builds/x",), "home": ("/root",)})
    assert len({at_home(text) for text in (b"/home/ada", b"/builds/x", b"/root")}) == 1


def test_what_says_too_little_is_no_fact() -> None:
    facts = {
        "cwd": ["/"],
        "home": ["/a"],
        "tmpdir": ["/tmp/", 5, "\udcff/tmp"],
        "hostname": ["localhost"],
        "x": ["abcd"],
    }
    assert usable(facts) == {"tmpdir": ("/tmp",)}
    assert SHORTEST == 4


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (b"http://127.0.0.1:41234/mcp", b"http://127.0.0.1:<port>/mcp"),
        (b'"localhost:60000"', b'"localhost:<port>"'),
        (b"[::1]:32768", b"[::1]:<port>"),
        (b"localhost:8000", b"localhost:8000"),
        (b"localhost:32767", b"localhost:32767"),
        (b"localhost:412345", b"localhost:412345"),
        (b"example.com:41234", b"example.com:41234"),
        (b"12:34567", b"12:34567"),
    ],
)
def test_ports_that_a_system_gives_out(text: bytes, hidden: bytes) -> None:
    assert hide_ports(text) == hidden


def test_only_facts_that_requests_hold_are_noticed() -> None:
    noticed = Noticed(ADA)
    for body in (b"nothing", b"/home/adam", b'{"cwd":"/home/ada/proj"}', b"%2Fvar%2Ffolders%2Fx1"):
        noticed.look(body)
    assert noticed.facts() == {"cwd": ["/home/ada/proj"], "home": ["/home/ada"], "tmpdir": ["/var/folders/x1"]}


def test_the_facts_of_a_tape() -> None:
    head = Head(cwd="/home/ada/proj", tmpdir="/tmp/t1", rules={"matching": 2})
    note = Note(t=0, what=NOTE, data={"home": ["/home/ada"], "cwd": "odd", "tmpdir": [None]})
    assert facts_of(head, [note], whole=True) == {"home": ("/home/ada",)}
    assert facts_of(head, [], whole=True) == {}
    assert facts_of(head, [], whole=False) == {"cwd": ("/home/ada/proj",), "tmpdir": ("/tmp/t1",)}
    assert facts_of(Head(), [], whole=True) == {}


@given(st.binary())
def test_marking_is_done_once(data: bytes) -> None:
    text = data + b" /home/ada " + data
    assert BOTH(BOTH(text)) == BOTH(text)
