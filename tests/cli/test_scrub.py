"""`scrub`: what it writes and what it leaves alone, what it says, and never a secret."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import agentruns
import pytest
from click.testing import CliRunner, Result

from tapeproxy.cli import scrub, show, verify
from tapeproxy.cli.encrypt import command as encrypt
from tapeproxy.cli.ls import command as ls
from tapeproxy.proxy.tapefile import load, read_entries
from tapeproxy.tapes.errors import TapeExistsError, TapeFormatError, UsageError
from tapeproxy.tapes.records import Head, Record, Request

SECRET = "sk-proj-AbCdEf0123456789xyzXYZ"
HEAD = replace(agentruns.HEAD, seed="ab" * 32, rules={"matching": 1, "redaction": 0})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAPEPROXY_HOME", str(tmp_path / "home"))


def written(path: str, *, seal: bool = True, head: Head = HEAD, body: object = None) -> Path:
    """A tape of one exchange with a secret in it, or with `body`."""
    asked = {"content": f"my key is {SECRET}", "session": "abc"} if body is None else body
    records: list[Record] = agentruns.exchange(1, "https://api.openai.com/v1/x", method="POST", asked=asked)
    return agentruns.write_tape(Path(path), records, head, sealed=seal)


def run(*words: str, env: Mapping[str, str] | None = None) -> Result:
    result = CliRunner().invoke(scrub.command, words, standalone_mode=False, env=dict(env or {}))
    if result.exception is not None:
        raise result.exception
    assert SECRET not in result.output
    return result


def test_a_clean_tape_is_written_and_says_where_it_comes_from() -> None:
    old = written("t.jsonl.gz")
    before = old.read_bytes()
    done = run("t.jsonl.gz", "-o", "new/clean.jsonl.gz")
    assert (done.return_value, done.output) == (0, "replaced 1 secret in 1 record: new/clean.jsonl.gz\n")
    assert old.read_bytes() == before
    clean, ending = load(Path("new/clean.jsonl.gz"))
    assert ending.canonical
    assert Path("new/clean.jsonl.gz").stat().st_mode & 0o777 == 0o600
    assert clean.head.seed == HEAD.seed
    assert clean.head.rules["redaction"] == 3
    first = next(iter(read_entries(old)))
    assert clean.head.scrubbed is not None
    assert clean.head.scrubbed["head"] == first.hash.hex()
    assert SECRET not in json.dumps(clean.head.to_json())
    assert SECRET.encode() not in clean.exchanges[0].request_body
    verified = CliRunner().invoke(verify.command, ["new/clean.jsonl.gz"], standalone_mode=False)
    assert verified.return_value == 0
    assert "scrubbed" in CliRunner().invoke(show.command, ["new/clean.jsonl.gz"], standalone_mode=False).output


def test_a_second_scrub_copies() -> None:
    written("t.jsonl.gz")
    run("t.jsonl.gz", "-o", "a.jsonl.gz")
    done = run("a.jsonl.gz", "-o", "b.jsonl.gz")
    assert done.output == "nothing to replace; copied to b.jsonl.gz\n"
    assert Path("a.jsonl.gz").read_bytes() == Path("b.jsonl.gz").read_bytes()


def test_the_first_origin_is_kept_through_a_second_change() -> None:
    written("t.jsonl.gz")
    run("t.jsonl.gz", "-o", "a.jsonl.gz")
    run("a.jsonl.gz", "-o", "b.jsonl.gz", "--redact-field", "session")
    one, two = (load(Path(name))[0].head.scrubbed for name in ("a.jsonl.gz", "b.jsonl.gz"))
    assert one is not None
    assert two is not None
    assert two["first"] == one["head"] != two["head"]


def test_a_tape_is_replaced_only_when_that_is_said() -> None:
    written("t.jsonl.gz")
    written("other.jsonl.gz")
    with pytest.raises(TapeExistsError):
        run("t.jsonl.gz", "-o", "other.jsonl.gz")
    with pytest.raises(UsageError, match="the tape itself"):
        run("t.jsonl.gz", "-o", "t.jsonl.gz", "--force")
    with pytest.raises(UsageError, match="no tape to write"):
        run("t.jsonl.gz")
    assert sorted(path.name for path in Path().iterdir() if path.suffix == ".gz") == ["other.jsonl.gz", "t.jsonl.gz"]
    run("t.jsonl.gz", "-o", "other.jsonl.gz", "--force")
    run("t.jsonl.gz", "--in-place")
    assert run("--check", "t.jsonl.gz", "other.jsonl.gz").return_value == 0
    assert not list(Path().glob(".draft-*"))


def test_an_interrupted_tape_stays_interrupted() -> None:
    written("t.jsonl.gz", seal=False)
    done = run("t.jsonl.gz", "-o", "a.jsonl.gz")
    assert "no seal: it was interrupted, and so is this one" in done.output
    assert not load(Path("a.jsonl.gz"))[1].sealed


def test_a_damaged_tape_is_refused_and_nothing_written() -> None:
    path = written("t.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-40] + b"x" * 40)
    with pytest.raises(TapeFormatError):
        run("t.jsonl.gz", "-o", "a.jsonl.gz")
    assert not Path("a.jsonl.gz").exists()


def test_the_seed_is_told_of_and_can_be_left_out() -> None:
    written("t.jsonl.gz")
    assert "random seed" in run("--check", "t.jsonl.gz").output
    run("t.jsonl.gz", "-o", "a.jsonl.gz", "--drop-seed")
    assert load(Path("a.jsonl.gz"))[0].head.seed is None
    assert "random seed" not in run("--check", "a.jsonl.gz").output


def test_rules_are_added_to_the_head_and_hold() -> None:
    written("t.jsonl.gz")
    words = ("--redact-field", "session", "--redact-pattern", "my (key)", "--redact-header", "x-test")
    run("t.jsonl.gz", "-o", "a.jsonl.gz", *words)
    tape = load(Path("a.jsonl.gz"))[0]
    assert tape.head.rules["redact"] == {"headers": ["x-test"], "fields": ["session"], "patterns": ["my (key)"]}
    request = tape.exchanges[0].request
    assert isinstance(request, Request)
    assert dict(request.headers)[b"X-Test"].startswith(b"tpx")
    body = json.loads(tape.exchanges[0].request_body)
    assert body["session"].startswith("tpx")
    assert body["content"].startswith("my tpx")
    assert run("--check", "a.jsonl.gz", *words).return_value == 0


def test_values_of_variables_and_files_are_looked_for() -> None:
    value, line = "plain-looking value no. 7", "of-a-file-0123456789"
    written("t.jsonl.gz", body={"a": f"say {value}", "b": line})
    Path("secrets.txt").write_text(f"\n{line}\n")
    words = ("--secret-env", "MINE", "--secret-file", "secrets.txt")
    checked = run("--check", "t.jsonl.gz", *words, env={"MINE": value})
    assert checked.return_value == 1
    assert "the value of $MINE: plai… (25 characters)" in checked.output
    assert "line 2 of secrets.txt" in checked.output
    assert value not in checked.output
    assert line not in checked.output
    run("t.jsonl.gz", "-o", "a.jsonl.gz", *words, env={"MINE": value})
    body = load(Path("a.jsonl.gz"))[0].exchanges[0].request_body
    assert value.encode() not in body
    assert line.encode() not in body


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--check", "--secret-env", "NOT_SET_ANYWHERE"), "is not set"),
        (("--check", "--secret-env", "PLAIN"), "too short or too plain"),
        (("--check", "--secret-file", "missing"), "cannot be read"),
        (("--redact-pattern", "("), "cannot be understood"),
        (("--redact-pattern", "x*"), "and so everywhere"),
        (("--check", "--drop-seed"), "changes nothing"),
        (("-o", "a", "--in-place"), "two different things"),
        (("-o", "a", "--seal-seed", "--drop-seed"), "two different things"),
        (("t.jsonl.gz", "-o", "a"), "one tape"),
    ],
)
def test_what_cannot_be_done_is_said(words: tuple[str, ...], what: str) -> None:
    written("t.jsonl.gz")
    with pytest.raises(UsageError, match=what):
        run("t.jsonl.gz", *words, env={"PLAIN": "test"})
    assert not Path("a").exists()


def test_findings_as_json() -> None:
    written("t.jsonl.gz")
    told = json.loads(run("--check", "--json", "t.jsonl.gz").output)["tapes"][0]
    assert (told["seeded"], told["redacted"], told["unseen"]) == (True, False, [])
    assert told["leftovers"] == [
        {
            "exchange": 1,
            "record": 1,
            "place": "request body $.content",
            "kind": "shape",
            "what": "a key that begins with sk-",
            "excerpt": "sk-p… (30 characters)",
        }
    ]
    done = json.loads(run("t.jsonl.gz", "-o", "a.jsonl.gz", "--json").output)
    assert (done["same"], done["records"], done["sealed"], done["left"]) == (False, 1, True, [])
    assert all(name in str(scrub.command.help) for name in (*done, *told, *told["leftovers"][0]))


def test_ls_and_show_mark_a_tape_that_was_not_redacted() -> None:
    Path(".tapes").mkdir()
    written(".tapes/x.tape.jsonl.gz")
    assert "not redacted" in CliRunner().invoke(ls, [], standalone_mode=False, env={"COLUMNS": "160"}).output
    assert "not redacted" in CliRunner().invoke(show.command, [], standalone_mode=False).output


def test_an_encrypted_tape_is_not_made_plain() -> None:
    written("t.jsonl.gz")
    secret = {"TAPEPROXY_PASSPHRASE": "correct horse battery"}
    CliRunner().invoke(encrypt, ["t.jsonl.gz", "-o", "e.jsonl.gz"], standalone_mode=False, env=secret)
    with pytest.raises(UsageError, match="is encrypted"):
        run("e.jsonl.gz", "-o", "a.jsonl.gz", env=secret)
    assert run("--check", "e.jsonl.gz", env=secret).return_value == 1
