"""What is written is read back the same, by PyYAML, by libyaml and by ruamel.yaml."""

import pytest
import yaml
from exporttapes import BODIES
from hypothesis import example, given
from hypothesis import strategies as st

from tapeproxy.proxy.yamltexts import parse_yaml
from tapeproxy.tapes.exports.yamltexts import key, scalar

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.text(" \n\ta#:-'\"|>\r\x85\u2028\ufeff\x7f", max_size=12),
)
SHOWN = [
    ("application/json", "application/json"),
    ("No", "'No'"),
    ("", "''"),
    ("it's", "'it''s'"),
    ("2026-01-02", "'2026-01-02'"),
    ("a\tb", '"a\\tb"'),
    ("\x00\u2028\ufeff", '"\\x00\\u2028\\ufeff"'),
    ("data: 1\n\ndata: 2\n\n", "|+\n  data: 1\n\n  data: 2\n"),
    ("a\nb\n", "|\n  a\n  b"),
    ("a\nb", "|-\n  a\n  b"),
    (" a\nb", '" a\\nb"'),
    (b"\xff\x00", "!!binary |\n  /wA="),
]


@pytest.mark.parametrize(("value", "text"), SHOWN)
def test_how_it_looks(value: str | bytes, text: str) -> None:
    assert scalar(value, 2) == text


@example("a\n\n\n")
@example("\n")
@example("a\n b")
@example("a" * 2000 + "\nb")
@given(TEXTS)
def test_texts_come_back(text: str) -> None:
    document = f"- {key(text, 2)} {scalar(text, 4)}\n- b: {scalar(text, 4)}\n  c: 1\n".encode()
    readings = [yaml.load(document, Loader=loader) for loader in (yaml.SafeLoader, yaml.CSafeLoader)]
    assert [*readings, parse_yaml(document)] == [[{text: text}, {"b": text, "c": 1}]] * 3


@given(BODIES)
def test_bytes_come_back(data: bytes) -> None:
    document = f"a:\n  b: {scalar(data, 4)}\n  c: 1\n".encode()
    assert yaml.safe_load(document) == {"a": {"b": data, "c": 1}} == parse_yaml(document)
