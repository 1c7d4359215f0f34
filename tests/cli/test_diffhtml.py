import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import click
import difftapes
import pytest
from click.testing import CliRunner, Result
from difftapes import Ask, get, say

from tapeproxy.cli.diff import command
from tapeproxy.tapes.errors import UsageError

SCRIPT = "</pre></bdi></style><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
CONTROLS = "\u202eevil\u2066 \x1b[31m \x00 \ufeff & ' \""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
VOID = {"meta", "img", "br", "link", "input"}


class Page(HTMLParser):
    """Checks that tags nest, and collects them and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(ours: list[Ask], theirs: list[Ask], *args: str, name: str = "worker") -> Result:
    difftapes.write(Path("a.tape.jsonl.gz"), *ours, names={"m/t0": name})
    difftapes.write(Path("b.tape.jsonl.gz"), *theirs, names={"m/t0": name}, code=2)
    arguments = ["a.tape.jsonl.gz", "b.tape.jsonl.gz", "--html", "d.html", *args]
    result = CliRunner().invoke(command, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def page(ours: list[Ask], theirs: list[Ask], **names: str) -> tuple[str, Page]:
    run(ours, theirs, **names)
    text = Path("d.html").read_text(encoding="utf-8")
    return text, Page(text)


def hostile() -> tuple[list[Ask], list[Ask]]:
    one = say("m/t0", "Same", SCRIPT + CONTROLS, answer=SCRIPT)
    other = say("m/t0", "Same", CONTROLS + SCRIPT, SCRIPT, answer=CONTROLS + SCRIPT, user=SCRIPT)
    return [one, get("m", "a<b>", SCRIPT)], [other, get("m", "a<b>", CONTROLS), get("m", f"x{SCRIPT}")]


def test_the_branch_point_is_ringed_and_open() -> None:
    ours = [say("m/t0", "Be kind", "Where?"), get("m", "same"), get("m", "old")]
    theirs = [say("m/t0", "Be strict", "News", "Where?"), get("m", "same"), say("m", "Hello")]
    text, found = page(ours, theirs)
    branches = [(tag, attrs) for tag, attrs in found.tags if "branch" in (attrs.get("class") or "").split()]
    assert [(tag, "open" in attrs, attrs["id"]) for tag, attrs in branches] == [("details", True, "branch")]
    assert "<del>" in text and "<ins>" in text
    shown = " ".join("".join(found.text).split())
    for words in ("INJECTED", "CHANGED", "1 message the same", "1 exchange the same", "branch point", "not there"):
        assert words in shown
    assert "code 0 in A, code 2 in B" in shown


def test_the_same_tapes_make_a_page_too() -> None:
    difftapes.write(Path("a.tape.jsonl.gz"), get("m", "a"))
    done = CliRunner().invoke(command, ["a.tape.jsonl.gz"] * 2 + ["--html", "d.html"], standalone_mode=False)
    assert done.return_value == 0
    assert "branch" not in {attrs.get("id") for _, attrs in Page(Path("d.html").read_text()).tags}


def test_tape_content_is_text() -> None:
    text, found = page(*hostile(), name=SCRIPT)
    assert not {tag for tag, _ in found.tags} & {"script", "img", "iframe", "object", "link", "base", "form"}
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on") or name == "style"]
    assert {attrs["href"] for tag, attrs in found.tags if tag == "a"} == {"#branch"}
    assert "</style><script>" in "".join(found.text)
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", text) is None
    assert '<span class="ctl">\\u202e</span>' in text


def test_the_page_asks_for_nothing() -> None:
    text, found = page(*hostile())
    policy = next(attrs["content"] or "" for tag, attrs in found.tags if tag == "meta" and "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert not [name for _, attrs in found.tags for name in attrs if name in ("src", "srcset", "action", "ping")]
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style and "@import" not in style
    assert "prefers-color-scheme: dark" in style


def test_a_page_that_cannot_be_written() -> None:
    Path("d.html").mkdir()
    with pytest.raises(click.BadParameter, match="is a directory"):
        run([get("m", "a")], [get("m", "a")])
    with pytest.raises(UsageError, match="the file cannot be written"):
        run([get("m", "a")], [get("m", "a")], "--html", "nowhere/d.html")


def test_many_events_have_a_line_each() -> None:
    ours = [get("m", f"p{at}", "x") for at in range(520)]
    theirs = [get("m", f"p{at}", "y") for at in range(520)]
    _, found = page(ours, theirs)
    opened = [tag for tag, attrs in found.tags if "event" in (attrs.get("class") or "").split()]
    assert (opened.count("details"), opened.count("div")) == (500, 20)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")
def test_a_browser_runs_nothing_and_applies_the_style(tmp_path: Path) -> None:
    run(*hostile(), name=SCRIPT)
    assert CHROMIUM is not None
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    arguments += ["--enable-logging=stderr", "--dump-dom", (tmp_path / "d.html").as_uri()]
    done = subprocess.run([CHROMIUM, *arguments], capture_output=True, text=True, timeout=120, check=True)
    assert "<title>tapeproxy diff</title>" in done.stdout
    assert "&lt;script&gt;document.title" in done.stdout
    assert "<script" not in done.stdout and "<img" not in done.stdout
    # The policy lets our own style in, by its hash.
    assert "Content Security Policy" not in done.stderr
