"""`tapeproxy import` on the command line: where its tapes go."""

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
