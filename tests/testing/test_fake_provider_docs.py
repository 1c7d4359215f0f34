"""The document says what the code does: every key, and an example that runs."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from tapeproxy.testing.script import APIS, Delivery, Entry, When, parse_script

TEXT = (Path(__file__).parents[2] / "docs" / "FAKE_PROVIDER.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return found


@pytest.mark.parametrize("table", [Entry, When, Delivery])
def test_every_key_is_documented(table: type) -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    assert {field.name for field in fields(table)} - {"delivery"} <= rows


def test_every_api_is_documented() -> None:
    assert [api for api in APIS if f"`{api}`" not in TEXT] == []


def test_the_script_in_it_is_a_script() -> None:
    assert len(parse_script(block("toml"), "FAKE_PROVIDER.md").entries) == 3


def test_the_code_in_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block("python"), "FAKE_PROVIDER.md", "exec"), {})
    assert capsys.readouterr().out == ""
