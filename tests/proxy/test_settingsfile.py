"""The settings file: which one counts, and what is said of a bad one."""

from pathlib import Path

import pytest

from tapeproxy.proxy.settingsfile import OWN, SHARED, read_redaction_above, read_rules_above
from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.redactionrules import RedactionRules


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def texts(folder: Path) -> list[str]:
    return [str(rule) for rule in read_rules_above(folder)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository."""
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    return tmp_path / "repo"


def test_both_files_say_the_same_things(root: Path) -> None:
    settings = 'ignore-json = ["$.id", "h/*: $..ts"]\nmatch-header = "x-beta"\n'
    wanted = ["ignore-json $.id", "ignore-json h/*: $..ts", "match-header x-beta"]
    assert texts(write(root / "own", OWN, settings)) == wanted
    assert texts(write(root / "shared", SHARED, "[project]\n[tool.tapeproxy]\n" + settings)) == wanted


def test_the_nearest_one_counts_up_to_the_root_of_the_repository(root: Path) -> None:
    deep = root / "a" / "b"
    write(root.parent, OWN, 'ignore-query = "outside"')
    write(deep, SHARED, "[tool.other]\ntapeproxy = 1\n")
    assert texts(deep) == []
    write(root, SHARED, '[tool.tapeproxy]\nignore-query = ["root"]')
    assert texts(deep) == ["ignore-query root"]
    write(root / "a", SHARED, '[tool.tapeproxy]\nignore-query = ["a"]')
    assert texts(deep) == ["ignore-query a"]
    write(root / "a", OWN, "")
    assert texts(deep) == []
    assert texts(root.parent) == ["ignore-query outside"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ignore-json = ", "is no TOML"),
        ("\xff", "is no TOML"),
        ('ignore-cookie = ["a"]', "there is no setting 'ignore-cookie'"),
        ("ignore-json = [1]", "ignore-json is a list of strings, but has 1"),
        ("ignore-json = {a = 1}", "ignore-json is a list of strings"),
        ('ignore-json = ["id"]', "ignore-json: a JSON path begins with"),
    ],
)
def test_a_bad_file_is_named(root: Path, text: str, said: str) -> None:
    (root / OWN).write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=said) as error:
        read_rules_above(root)
    assert error.value.where == str(root / OWN)


def test_a_table_that_is_none(root: Path) -> None:
    write(root, SHARED, "[tool]\ntapeproxy = 1\n")
    with pytest.raises(UsageError, match="is a table"):
        read_rules_above(root)


def test_what_to_redact_stands_beside_the_rules(tmp_path: Path) -> None:
    text = 'redact-header = "x-mine"\nredact-field = ["pin", "$.a.b"]\nignore-header = ["x-b"]\n'
    (tmp_path / "tapeproxy.toml").write_text(text)
    assert read_redaction_above(tmp_path) == RedactionRules(headers=("x-mine",), fields=("pin", "$.a.b"))
    assert len(read_rules_above(tmp_path)) == 1
    (tmp_path / "tapeproxy.toml").write_text("redact-pattern = '(a+)+'\n")
    with pytest.raises(UsageError, match="repeats a group"):
        read_redaction_above(tmp_path)
