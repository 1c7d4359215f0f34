"""Rules: their text, where they apply, and what is refused with which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapeproxy.tapes.jsonpaths import JsonPath, Step
from tapeproxy.tapes.rewrites import Rewrite
from tapeproxy.tapes.rules import KINDS, Kind, Rule, Rules, parse_rule, read_rule, read_rules

GOOD: list[tuple[str, str, Rule]] = [
    ("match-header", "OpenAI-Beta", Rule("match-header", "openai-beta")),
    ("ignore-header", "Content-Type", Rule("ignore-header", "content-type")),
    ("ignore-query", "utm_*", Rule("ignore-query", "utm_*")),
    ("ignore-form", "ids[]", Rule("ignore-form", "ids[]")),
    ("ignore-query", "API.example.com/v1/*: ts", Rule("ignore-query", "ts", "api.example.com/v1/*")),
    ("ignore-json", "$.a[*]", Rule("ignore-json", JsonPath((Step("a"), Step(None))))),
    ("ignore-json", "localhost:8000: $.a", Rule("ignore-json", JsonPath((Step("a"),)), "localhost:8000")),
    ("ignore-json", "*/chat: $.a", Rule("ignore-json", JsonPath((Step("a"),)), "*/chat")),
    ("rewrite-url", r"/v\d+/=/v/", Rule("rewrite-url", Rewrite(r"/v\d+/", "/v/"))),
    ("rewrite-body", "a: b=c", Rule("rewrite-body", Rewrite("a: b", "c"))),
]


@pytest.mark.parametrize(("kind", "text", "rule"), GOOD)
def test_rules_are_read_and_written(kind: str, text: str, rule: Rule) -> None:
    assert parse_rule(kind, text) == rule
    assert read_rule(str(rule)) == rule


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: ": " not in name)


@given(st.sampled_from(["ignore-query", "ignore-form"]), names, st.sampled_from(["", "h", "h.x:80/p/*: "]))
def test_whatever_can_be_read_is_read_again_as_it_was_written(kind: Kind, name: str, scope: str) -> None:
    rule = parse_rule(kind, scope + name)
    assert read_rule(str(rule)) == rule


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("ignore-cookies", "a", "'ignore-cookies' is no rule; there are match-header, "),
        ("ignore-query", "", "ignore-query: there is no name"),
        ("match-header", "a b", "match-header: 'a b' is no header's name"),
        ("match-header", "x-*", "named in full"),
        ("ignore-json", "metadata.id", r"ignore-json: a JSON path begins with \$"),
        ("rewrite-url", "abc", "rewrite-url: a rewrite is REGEX=REPLACEMENT"),
        ("rewrite-body", "(a+)+=b", "rewrite-body: the regular expression"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_kind(kind: str, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_rule(kind, text)


@pytest.mark.parametrize("lines", [[1], ["nonsense"], ["ignore-json $."], ["ignore-query a"] * 1001])
def test_a_tape_s_rules_are_not_believed(lines: list[object]) -> None:
    with pytest.raises(ValueError, match=r"rule|JSON path"):
        read_rules(lines)


@pytest.mark.parametrize(
    ("scope", "applies"),
    [
        ("", True),
        ("h.example", True),
        ("*.example", True),
        ("h.example/v1/chat", True),
        ("h.example/v1/*", True),
        ("*/chat", False),
        ("*/*chat", True),
        ("h.example/v1", False),
        ("other.example", False),
        ("h.example:8000", False),
    ],
)
def test_where_a_rule_applies(scope: str, applies: bool) -> None:
    rules = Rules((Rule("ignore-query", "a", scope),))
    local = rules.at("h.example", b"/v1/chat")
    assert bool(local) == local.ignores("ignore-query", b"a") == bool(rules.used) == applies


def test_only_what_was_found_counts_as_used() -> None:
    rules = Rules(tuple(parse_rule(kind, text) for kind, text, _ in GOOD))
    local = rules.at("h", b"/")
    local.remove_json({"b": 1})
    local.rewrite("rewrite-body", b"nothing")
    assert not local.ignores("ignore-query", b"q")
    assert rules.used == set()
    local.remove_json({"a": [1]})
    assert local.ignores("ignore-query", b"utm_source")
    assert local.rewrite("rewrite-body", b"a: b") == b"c"
    assert {rule.kind for rule in rules.used} == {"ignore-json", "ignore-query", "rewrite-body"}


def test_every_kind_is_tried_here() -> None:
    assert {kind for kind, _, _ in GOOD} == set(KINDS)
