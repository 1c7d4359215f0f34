"""`tapeproxy bisect --commits` on throw-away repositories, offline, with one tape."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import agentruns
import pytest
from clirun import Cli

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")

# The code of a commit is agent.py and what it imports; PLAN says what it asks for.
AGENT = """
import urllib.request
from plan import PLAN
for path in PLAN:
    urllib.request.urlopen("http://data.test:8080" + path, timeout=20).read()
"""
GOOD, BAD = ["/a", "/b"], ["/a", "/c?x=1"]


class Repository:
    """A repository in `folder` whose commits are made one by one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        (folder / "agent.py").write_text(AGENT)
        (folder / ".gitattributes").write_text("")

    def git(self, *words: str) -> str:
        who = ["-c", "user.name=Ada L", "-c", "user.email=ada@x.test"]
        done = subprocess.run(["git", *who, *words], cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, subject: str, plan: list[str] | None) -> str:
        """A commit with this plan; None: one whose code does not even parse, and whose build fails."""
        (self.folder / "plan.py").write_text(f"# {subject}\nPLAN = {plan!r}\n" if plan is not None else "PLAN = [\n")
        self.git("add", "-A")
        self.git("commit", "--allow-empty", "-qm", subject)
        return self.git("rev-parse", "HEAD")

    def state(self) -> tuple[str, str, str, str]:
        """All that is the user's."""
        return (
            self.git("rev-parse", "HEAD"),
            self.git("status", "--porcelain=v2", "--branch", "--ignored"),
            self.git("worktree", "list", "--porcelain"),
            (self.folder / ".git" / "HEAD").read_text(),
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "project")


@pytest.fixture
def here(repository: Repository, tmp_path: Path) -> Cli:
    records = agentruns.exchange(1, "http://data.test:8080/a", chunks=[b"1"])
    records += agentruns.exchange(len(records) + 1, "http://data.test:8080/b", chunks=[b"2"])
    agentruns.write_tape(tmp_path / "good.tape.jsonl.gz", records)
    return Cli(repository.folder, tmp_path / "home")


TAPE = "../good.tape.jsonl.gz"
RUN = ("--", sys.executable, "agent.py")


def test_the_commit_is_found_that_broke_it(here: Cli, repository: Repository) -> None:
    ids = [repository.commit("the beginning", GOOD)]
    for n in range(1, 17):
        ids.append(repository.commit(f"change {n}", None if n == 8 else GOOD if n < 11 else BAD))
    (repository.folder / "plan.py").write_text("the user is at work here")
    (repository.folder / "staged.py").write_text("x")
    repository.git("add", "staged.py")
    before = repository.state()
    setup = "python3 -c 'import plan'"
    words = ["bisect", TAPE, "--commits", f"{ids[0]}..HEAD~0", "--setup", setup]

    done = here.run(*words, *RUN)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"first bad commit: {ids[11]}\n  author   Ada L, ")
    assert "  subject  change 11\n" in done.stdout
    assert "violation: this request is not on the tape" in done.stdout
    assert "http://data.test:8080/c?x=1" in done.stdout
    assert f"last good commit: {ids[10][:12]} change 10" in done.stdout
    assert "change 8: skip: the setup failed: SyntaxError" in done.stderr
    assert done.stdout.endswith("5 probes\n"), "log2(16), and the one that can't be built"
    assert repository.state() == before
    assert (repository.folder / "plan.py").read_text() == "the user is at work here"


def small(repository: Repository, *plans: list[str] | None) -> list[str]:
    return [repository.commit(f"change {n}", plan) for n, plan in enumerate(plans)]


def test_what_cannot_be_built_is_told(here: Cli, repository: Repository) -> None:
    ids = small(repository, GOOD, GOOD, None, None, BAD)
    # No setup: the program itself says that it can't be tested.
    check = 'case "$(cat "$TAPEPROXY_STDERR")" in *SyntaxError*) exit 125;; esac; exit "$TAPEPROXY_EXIT"'
    done = here.run("bisect", TAPE, "--commits", f"{ids[0]}..main", "--check", check, *RUN)
    assert done.returncode == 0, done.stderr
    assert f"first bad commit: {ids[4]}" in done.stdout
    for n in (2, 3):
        assert f"could not be tested, and may be the one: {ids[n][:12]} change {n}" in done.stdout


CONCLUDES = """
from plan import PLAN
from tapeproxy.hints import final_state
final_state({"total": len(PLAN)})
"""


@pytest.mark.parametrize(
    "judge", ["--predicate=$.final_state.total=2", '--check=zcat "$TAPEPROXY_TAPE" | grep -q "total...2"']
)
def test_what_each_commit_concludes_is_judged(judge: str, here: Cli, repository: Repository) -> None:
    """Nothing is asked, so there is no violation: the totals of the replays are all that differs."""
    (repository.folder / "agent.py").write_text(CONCLUDES)
    ids = small(repository, GOOD, GOOD, GOOD, ["/a"], ["/a"])
    (repository.folder / "plan.py").write_text(f"PLAN = {GOOD!r}\n")
    recorded = here.run("record", "-o", TAPE, "--force", *RUN)
    assert recorded.returncode == 0, recorded.stderr
    done = here.run("bisect", TAPE, "--commits", f"{ids[0]}..main", judge, *RUN)
    assert done.returncode == 0, done.stderr
    assert f"first bad commit: {ids[3]}" in done.stdout


def test_a_file_named_by_its_whole_path_is_the_commit_s(here: Cli, repository: Repository) -> None:
    ids = small(repository, GOOD, BAD)
    (repository.folder / "plan.py").write_text("raise SystemExit('the checkout')")
    argv = ("--", sys.executable, str(repository.folder / "agent.py"))
    done = here.run("bisect", TAPE, "--json", "--commits", f"{ids[0]}..main", *argv)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["bad"]["commit"], found["good"]["commit"], found["skipped"]) == (ids[1], ids[0], [])
    assert [probe["verdict"] for probe in found["probes"]] == ["bad", "good"]


def test_from_a_folder_within_the_repository(here: Cli, repository: Repository) -> None:
    sub = repository.folder / "sub"
    small(repository, GOOD)
    sub.mkdir()
    (sub / "agent.py").write_text(AGENT)
    ids = []
    for plan in (BAD, GOOD, BAD):
        (sub / "plan.py").write_text(f"PLAN = {plan!r}\n")
        ids += small(repository, GOOD)
    inside = Cli(sub, here.home)
    done = inside.run("bisect", f"../{TAPE}", "--commits", "HEAD~3..HEAD~2", *RUN)
    assert "the good commit" in done.stderr
    assert "cannot be tested: the folder is not there" in done.stderr
    done = inside.run("bisect", f"../{TAPE}", "--commits", "HEAD~1..HEAD", *RUN)
    assert done.stdout.startswith(f"first bad commit: {ids[2]}"), done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--commits", "HEAD..HEAD~1"], "no ancestor of the bad one"),
        (["--commits", "HEAD..HEAD"], "the same commit"),
        (["--commits", "HEAD"], "is not GOOD..BAD"),
        (["--commits", "HEAD~1...HEAD"], "is not GOOD..BAD"),
        (["--commits", "nothing..HEAD"], "'nothing' is no commit here"),
        (["--commits", "-x..HEAD"], "'-x' is no commit"),
        (["--commits", "HEAD~1..HEAD"], "does not fail at the bad commit"),
        (["--commits", "HEAD~1..HEAD", "--check", "false"], "fails at the good commit"),
        (["--commits", "HEAD~1..HEAD", "--check", "exit 200"], "could not judge: exit code 200"),
        (["--commits", "HEAD~1..HEAD", "--setup", "exit 1"], "cannot be tested: the setup failed: exit code 1"),
        (["--commits", "HEAD~1..HEAD", "--check", "true", "--predicate", "$.exit=0"], "two ways"),
        (["--commits", "HEAD~1..HEAD", "--keep", "x"], "--commits makes no live calls"),
        (["--setup", "true"], "--setup is for --commits"),
    ],
)
def test_what_cannot_be_searched(words: list[str], said: str, here: Cli, repository: Repository) -> None:
    small(repository, GOOD, GOOD)
    before = repository.state()
    done = here.run("bisect", TAPE, *words, *RUN)
    assert done.returncode == 2
    assert said in done.stderr
    assert repository.state() == before


def test_a_merge_that_is_found_can_be_searched_in_turn(here: Cli, repository: Repository) -> None:
    ids = small(repository, GOOD, GOOD)
    repository.git("checkout", "-qb", "side", ids[0])
    broken = repository.commit("broken aside", BAD)
    repository.git("checkout", "-q", "main")
    (repository.folder / "other.py").write_text("")
    small(repository, GOOD)
    repository.git("merge", "-q", "--no-ff", "-X", "theirs", "-m", "merge side", "side")
    repository.git("checkout", "-q", broken, "--", "plan.py")
    repository.git("commit", "--allow-empty", "-q", "--amend", "--no-edit")
    merged = repository.git("rev-parse", "HEAD")
    done = here.run("bisect", TAPE, "--commits", f"{ids[0]}..main", *RUN)
    assert done.stdout.startswith(f"first bad commit: {merged}"), done.stderr
    again = f"{merged[:12]}^1..{merged[:12]}^2"
    assert f"what it brought in can be searched: --commits {again}" in done.stdout


def test_outside_of_a_repository(here: Cli, tmp_path: Path) -> None:
    done = Cli(tmp_path, here.home).run("bisect", "good.tape.jsonl.gz", "--commits", "a..b", *RUN)
    assert (done.returncode, "not a git repository" in done.stderr) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_in_the_middle_it_leaves_nothing(number: int, here: Cli, repository: Repository) -> None:
    ids = small(repository, GOOD, GOOD, BAD)
    before = repository.state()
    # The build tells that it is there, and where, and waits.
    setup = 'echo "$PWD" > "$OUT.part"; mv "$OUT.part" "$OUT"; exec sleep 60'
    out = repository.folder.parent / "where"
    words = ["bisect", TAPE, "--commits", f"{ids[0]}..main", "--setup", f"OUT={out}; {setup}", *RUN]
    process = here.start(*words)
    try:
        deadline = time.monotonic() + 30
        while not out.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        tree = Path(out.read_text().strip())
        assert tree.is_dir()
        process.send_signal(number)
        _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "tapeproxy: stopped" in stderr
    assert not tree.parent.exists()
    assert repository.state() == before
