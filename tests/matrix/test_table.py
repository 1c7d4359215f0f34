"""The page's table: every client has a row, and what a run writes goes between the markers."""

import json
import re

import pytest
from matrix import results, table
from matrix.clients import CLIENTS
from matrix.results import Result, kept
from matrix.runtimes import AGENTS, NODE_LOCK, PYTHON_LOCK

TEXT = table.PAGE.read_text(encoding="utf-8")


def test_the_page_has_a_row_for_each_client() -> None:
    _, _, rest = TEXT.partition(table.BEGIN)
    inside, end, _ = rest.partition(table.END)
    assert end
    names = [row[0].partition(" (")[0] for row in rows(inside)]
    assert names == [client.name.partition(" (")[0] for client in CLIENTS]
    assert {len(row) for row in rows(inside)} == {len(rows(inside)[0])}
    assert all(row[2] == "✓" or row[2].startswith("not shown: ") for row in rows(inside))


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_each_client_has_a_program_and_a_pinned_version(client: table.Client) -> None:
    folder = AGENTS / "node" if client.language == "Node" else AGENTS
    assert (folder / client.program).exists()
    if client.language == "Python":
        assert re.search(rf"(?m)^{re.escape(client.package)}==", PYTHON_LOCK.read_text())
    if client.language == "Node" and client.package:
        assert f"node_modules/{client.package}" in json.loads(NODE_LOCK.read_text())["packages"]


def test_what_was_shown_goes_between_the_markers(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    shown = Result(version="1.2.3", exchanges=5, calls=4, http=("HTTP/1.1",), tools=1, others=5, asked=5)
    results.keep("openai", shown)
    results.keep("curl", Result(reason="curl is not installed here"))
    assert kept("openai") == shown
    page = table.written(f"a\n{table.BEGIN}\nold\n{table.END}\nb\n", table.render())
    assert page.startswith(f"a\n{table.BEGIN}\n| client |")
    assert page.endswith(f"\n{table.END}\nb\n")
    assert "old" not in page
    cells = {row[0]: row for row in rows(page)}
    assert cells["openai (Python)"] == ["openai (Python)", "1.2.3", "✓", "5", "4", "0", "✓", "", "1.1", "", "5 of 5"]
    assert cells["curl"][2] == "not shown: curl is not installed here"
    assert cells["anthropic (Python)"][2] == "not shown: not run"
    assert kept("anthropic") is None


@pytest.mark.parametrize("text", ["", table.BEGIN, table.END + table.BEGIN, 2 * table.BEGIN + table.END])
def test_a_page_without_its_markers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=table.PAGE.name):
        table.written(text, "")
