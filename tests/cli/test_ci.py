"""`tapeproxy ci`: one summary of reports, in which nothing of a report is markup, or a command to a runner."""

import json
import re
import sys
from pathlib import Path

import agentruns
import pytest
from clirun import Cli

from tapeproxy.cli.cisummary import MOST_BYTES, Price, annotations, markdown, saved
from tapeproxy.tapes.cireports import Entry, Told
from tapeproxy.tapes.records import Exit
from tapeproxy.tapes.usage import Usage

PASSED = Entry(
    name="tests/test_a.py::test_b",
    tape="tests/tapes/test_a/test_b.tape.jsonl.gz",
    code=0,
    answered=2,
    exchanges=2,
    waited_ns=14_200_000_000,
    took_ns=12_000_000,
    usage=(Usage("gpt-4.1-mini", 2, 1_200_000, 300_000, 0),),
)
FAILED = Entry(
    name="tests/test_a.py::test_c",
    tape="tests/tapes/test_a/test_c.tape.jsonl.gz",
    code=3,
    why="1 violation",
    answered=1,
    exchanges=2,
    told=(Told("violation", "this request is not on the tape\n  request: GET https://a.test/"), Told("drift", "x")),
    kept=(".tapes/failures/test_c.tape.jsonl.gz",),
    file="tests/test_a.py",
)
PAGE = """\
## Tapes: 1 passed, **1 failed**

| | ran | answers | why | took | recorded |
| --- | --- | --: | --- | --: | --: |
| ❌ | `tests/test_a.py::test_c` | 1 of 2 | `1 violation` |  |  |

<details><summary><code>tests/test_a.py::test_c</code></summary>

```text
violation: this request is not on the tape
  request: GET https://a.test/
```

and 1 more

tape: `tests/tapes/test_a/test_c.tape.jsonl.gz`

what it did: `.tapes/failures/test_c.tape.jsonl.gz`

</details>

| | ran | answers | why | took | recorded |
| --- | --- | --: | --- | --: | --: |
| ✅ | `tests/test_a.py::test_b` | 2 of 2 |  | 12 ms | 14.2 s |

Time: 12 ms; what was answered from tapes had taken 14.2 s when it was recorded.
Not asked of models again: 2 calls, 1,200,000 tokens in and 300,000 out.
"""


def test_a_page() -> None:
    assert markdown([PASSED, FAILED]) == PAGE
    assert "Nothing was replayed" in markdown([])


def test_money_is_only_what_prices_say() -> None:
    priced = markdown([PASSED], [Price("gpt-4.1*", 0.4, 1.6), Price("*", 100, 100)])
    assert "That is 0.9600 at the prices given" in priced
    other = Entry(name="b", tape="b", code=0, usage=(Usage("claude|x", 1, 5, 6, 1),))
    page = markdown([PASSED, other], [Price("gpt-*", 1, 1)])
    assert "No price was given for `claude|x`." in page
    assert "3 calls, 1,200,005 tokens in and 300,006 out; 1 of them do not say all of theirs" in page
    assert "| `claude\\|x` | 1 | 5 | 0 | 0 | 6 |" in page
    assert saved([PASSED], [])["money"] is None


CACHED = Entry(name="b", tape="b", code=0, usage=(Usage("claude", 1, 91_010, 100, 0, 90_000, 1_000),))


@pytest.mark.parametrize(
    ("price", "money", "rough"),
    [
        (Price("*", 3, 15, 0.3, 3.75), (10 * 3 + 90_000 * 0.3 + 1_000 * 3.75 + 100 * 15) / 1e6, 0),
        (Price("*", 3, 15, 0.3), (1_010 * 3 + 90_000 * 0.3 + 100 * 15) / 1e6, 1_000),
        (Price("*", 3, 15), (91_010 * 3 + 100 * 15) / 1e6, 91_000),
    ],
)
def test_cached_tokens_have_their_own_price(price: Price, money: float, rough: int) -> None:
    page, told = markdown([CACHED], [price]), saved([CACHED], [price])
    assert (told["money"], told["cached_at_full_price"]) == (pytest.approx(money), rough)
    assert f"That is {money:.4f} at the prices given." in page
    assert (f"It is rough: {rough:,} of the tokens were read from a cache or written to one" in page) == bool(rough)
    assert "91,010 tokens in (90,000 read from a cache, 1,000 written to one) and 100 out" in page


HOSTILE = [
    "```\n# mine\n<script>alert(1)</script>",
    "`| a | b |\n\n</code></summary></details><img src=x onerror=alert(1)>",
    "@everyone [x](https://evil.test) ![](https://evil.test/x.png)",
    "::set-env name=A::b\n  ::stop-commands::x\n::add-mask::\n\t::error::",
    "##[group]x",
    "\x1b[31m\u202ered\r\n::warning::x\x00",
    "a%0A::error::x,title=y\n",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_a_report_is_markup(text: str) -> None:
    entry = Entry(
        name=text,
        tape=text,
        code=3,
        why=text,
        told=(Told(text, text),),
        kept=(text,),
        usage=(Usage(text, 1, 1, 1, 0),) * 2,
    )
    other = Entry(name=text, tape=text, code=0, usage=(Usage("b", 1, 1, 1, 1),))
    page = markdown([entry, other], [Price("b", 1, 1)])
    lines = [*outside_of_fences(page)]
    for line in lines:
        bare = without_code(line)
        assert not re.search(r"[@\[\]!]|script|img|https|mine|evil", bare), line
        assert re.sub(r"</?(details|summary|code)>", "", bare).count("<") == 0 or "<summary>" in line, line
    # As many columns in each row as there are.
    rows = [re.sub(r"\\\|", "", line) for line in lines if line.startswith("|")]
    assert {row.count("|") for row in rows} <= {5, 7}
    for line in (page + "\n".join(annotations([]))).split("\n"):
        assert not line.strip().startswith("::") and "##[" not in line
    for line in annotations([entry]):
        assert "\n" not in line and "\r" not in line and line.startswith("::error file=")
        properties, _, _ = line.removeprefix("::error ").partition("::")
        assert properties.count(",") == 1 and properties.count(":") == 0


def outside_of_fences(page: str) -> list[str]:
    kept: list[str] = []
    fence = ""
    for line in page.split("\n"):
        ticks = re.match(r"`{3,}(?=(text)?$)", line)
        if not fence and ticks and line.endswith("text"):
            fence = ticks[0]
        elif fence and line == fence:
            fence = ""
        elif not fence:
            kept.append(line)
    assert not fence
    return kept


def without_code(line: str) -> str:
    """A line without its spans of code and without what a summary shows as code."""
    line = re.sub(r"<summary><code>[^<]*</code></summary>", "<summary>", line)
    return re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", line)


def test_a_page_has_an_end() -> None:
    long = "\n".join(["::x" + "`" * 7900] * 9)
    failed = [Entry(name=f"{at}" * 300, tape="t", code=1, why=long, told=(Told("failed", long),)) for at in range(2000)]
    page = markdown([*failed, *[PASSED] * 2000])
    assert len(page.encode()) < MOST_BYTES
    assert re.search(r"What is told of \d+ more is left out for its size", page)
    assert "<details><summary>2000 passed</summary>" in page
    assert len([*annotations(failed)]) == 11


AGENT = """
import json, sys, urllib.request
asked = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": sys.argv[1]}]}
headers = {"Content-Type": "application/json"}
request = urllib.request.Request("http://api.test/v1/chat/completions", json.dumps(asked).encode(), headers)
urllib.request.urlopen(request).read()
"""
ASKED = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
ANSWER = agentruns.sse(
    {"model": "gpt-4o-2024", "choices": [{"delta": {"content": "hello"}}]},
    {"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 5}},
)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """In a folder with reports of two replays and of a verification."""
    folder = tmp_path_factory.mktemp("reports")
    cli = Cli(folder, folder / "home")
    (folder / "agent.py").write_text(AGENT)
    stream = ((b"Content-Type", b"text/event-stream"),)
    url = "http://api.test/v1/chat/completions"
    records = agentruns.exchange(1, url, method="POST", asked=ASKED, headers=stream, chunks=ANSWER)
    agentruns.write_tape(folder / "a.tape.jsonl.gz", [*records, Exit(t=10**9, code=0, duration=10**9)])
    for name, word in (("good", "hi"), ("bad", "ho")):
        argv = ["--report", f"{name}.json", "--", sys.executable, "agent.py", word]
        cli.run("replay", "a.tape.jsonl.gz", *argv)
    done = cli.run("verify", "--json", "--times", "1", "a.tape.jsonl.gz", "--", sys.executable, "agent.py", "hi")
    (folder / "verified.json").write_text(done.stdout)
    return cli


def test_reports_of_ours(cli: Cli) -> None:
    done = cli.run("ci", "good.json", "bad.json", "verified.json", "--price", "gpt-4o*=1000,1000")
    assert done.returncode == 0, done.stderr
    assert "## Tapes: 3 passed, **1 failed**" in done.stdout
    assert "changed" not in done.stderr and "$.messages[0].content" in done.stdout
    assert "2 calls, 80 tokens in and 10 out.\nThat is 0.0900 at the prices given" in done.stdout
    assert cli.run("ci", "good.json", "bad.json", "--fail").returncode == 3
    assert cli.run("ci", "good.json", "verified.json", "--fail").returncode == 0
    told = json.loads(cli.run("ci", "--json", "good.json", "bad.json").stdout)
    assert (told["passed"], told["failed"], told["exit_code"]) == (1, 1, 3)
    assert told["saved"]["usage"] == [
        {"model": "gpt-4o-2024", "calls": 1, "tokens_in": 40, "tokens_out": 5, "uncounted": 0}
        | {"tokens_cached": 0, "tokens_written": 0}
    ]


def test_on_github(cli: Cli) -> None:
    page = cli.cwd / "page.md"
    page.write_text("before\n")
    done = cli.run("ci", "bad.json", "--github", "-o", "copy.md", env={"GITHUB_STEP_SUMMARY": str(page)})
    assert done.stdout.startswith("::error file=a.tape.jsonl.gz,title=tapeproxy%3A a.tape.jsonl.gz::1 violation%0A")
    assert done.stdout.count("\n") == 1
    assert page.read_text() == "before\n" + (cli.cwd / "copy.md").read_text()
    assert "## Tapes: 0 passed" in cli.run("ci", "bad.json", "--github").stdout
    workspace = {"GITHUB_STEP_SUMMARY": str(page), "GITHUB_WORKSPACE": str(cli.cwd.parent)}
    done = cli.run("ci", "bad.json", "--github", env=workspace)
    assert done.stdout.startswith(f"::error file={cli.cwd.name}/a.tape.jsonl.gz,")


def test_json_holds_no_commands(cli: Cli) -> None:
    test = {"test": "t.py::##[group]", "tape": str(cli.cwd / "t.tape.jsonl.gz"), "longrepr": "##[x]", "violations": []}
    (cli.cwd / "odd.json").write_text(json.dumps(test))
    text = cli.run("ci", "--json", "odd.json").stdout
    assert "##[" not in text
    (entry,) = json.loads(text)["entries"]
    assert (entry["name"], entry["tape"]) == ("t.py::##[group]", "t.tape.jsonl.gz")


def test_a_folder_of_reports(cli: Cli) -> None:
    folder = cli.cwd / "failures"
    folder.mkdir()
    assert "Nothing was replayed" in cli.run("ci", "failures").stdout
    test = {"test": "t.py::a", "tape": "t.tape.jsonl.gz", "longrepr": "E   assert 0", "violations": []}
    (folder / "a.json").write_text(json.dumps(test))
    (cli.cwd / "tests.json").write_text(json.dumps({"tests": [test | {"outcome": "failed"}]}))
    done = cli.run("ci", "tests.json", "failures", "--fail")
    assert done.returncode == 1 and "**1 failed**" in done.stdout and "`assert 0`" in done.stdout


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", "{", "x.json: it is no report of tapeproxy: it is no JSON"),
        ("x.json", "[]", "x.json: it is no report of tapeproxy: it is no JSON object"),
        ("x.json", '{"a": 1}', "x.json: it is no report of tapeproxy: neither"),
        ("x.json", '{"exit_code": 0, "violations": [1]}', "x.json: violations[0] is no JSON object"),
        ("y.json", None, "y.json: the report cannot be read: no such file or directory"),
    ],
)
def test_what_is_no_report(cli: Cli, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (cli.cwd / name).write_text(text)
    done = cli.run("ci", "good.json", name)
    assert done.returncode == 2 and said in done.stderr and not done.stdout


@pytest.mark.parametrize(
    "price", ["gpt", "gpt=1", "=1,2", "gpt=a,b", "gpt=-1,2", "gpt=inf,2", "gpt=nan,1", "gpt=1,2,-1", "gpt=1,2,3,4,5"]
)
def test_what_is_no_price(cli: Cli, price: str) -> None:
    done = cli.run("ci", "good.json", "--price", price)
    assert done.returncode == 2 and "is not MODEL=IN,OUT" in done.stderr


def test_a_page_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    done = cli.run("ci", "good.json", "-o", str(tmp_path / "no" / "x.md"))
    assert done.returncode == 2 and "the summary cannot be written: no such file" in done.stderr
