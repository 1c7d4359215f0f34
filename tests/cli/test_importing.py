"""`tapeproxy import` on the command line: where its tapes go."""

import json
from pathlib import Path

import pytest
from clirun import Cli

ENTRY = '{"request": {"method": "GET", "uri": "http://a.test/"}, "response": {"status": {"code": 204}}}'


@pytest.mark.parametrize(
    ("sources", "output", "tapes"),
    [
        (["one.json"], "tapes/test_a", ["tapes/test_a/one.tape.jsonl.gz"]),
        (
            ["one.json", "two.json"],
            "tapes/test_a",
            ["tapes/test_a/one.tape.jsonl.gz", "tapes/test_a/two.tape.jsonl.gz"],
        ),
        (["one.json"], "bug.tape.jsonl.gz", ["bug.tape.jsonl.gz"]),
        (["one.json"], "a/new/bug.tape.jsonl.gz", ["a/new/bug.tape.jsonl.gz"]),
        (["one.json"], "is.there", ["is.there/one.tape.jsonl.gz"]),
    ],
)
def test_a_name_without_a_suffix_is_a_folder(tmp_path: Path, sources: list[str], output: str, tapes: list[str]) -> None:
    (tmp_path / "is.there").mkdir()
    for source in sources:
        (tmp_path / source).write_text(f'{{"version": 1, "interactions": [{ENTRY}]}}')
    done = Cli(tmp_path, tmp_path / "home").run("import", *sources, "-o", output)
    assert done.returncode == 0, done.stderr
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.gz")) == tapes


def test_a_file_that_is_bad_as_a_whole_keeps_no_other_from_being_imported(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(f'{{"interactions": [{ENTRY}]}}')
    (tmp_path / "evil.json").write_text("[1]")
    (tmp_path / "none.json").write_text('{"interactions": [{"request": 1}]}')
    (tmp_path / "two.json").write_text(f'{{"interactions": [{ENTRY}, {{}}]}}')
    cli = Cli(tmp_path, tmp_path / "home")
    files = ("one.json", "evil.json", "none.json", "two.json")
    done = cli.run("import", *files, "--keep-going", "--json", "-o", "many")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["source"] for one in told if one["tape"]] == ["one.json", "two.json"]
    assert [[error["place"] for error in one["refused"]] for one in told] == [[], [""], [""], ["interactions[1]"]]
    assert "interactions[0]: there is no 'response' here" in told[2]["refused"][0]["reason"]
    assert sorted(path.name for path in (tmp_path / "many").iterdir()) == ["one.tape.jsonl.gz", "two.tape.jsonl.gz"]
    again = cli.run("import", *files, "-o", "many", "--force")
    assert (again.returncode, "evil.json: " in again.stderr) == (5, True)
    nothing = cli.run("import", "evil.json", "none.json", "--keep-going", "-o", "none")
    assert (nothing.returncode, nothing.stderr.count("left out: ")) == (5, 2)
    assert "Traceback" not in nothing.stderr
