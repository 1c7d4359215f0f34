"""What a caller of the library may say of a tape: rules and words, read before anything is opened."""

from collections.abc import Iterable
from typing import Literal, get_args

from tapeproxy.tapes.errors import UsageError
from tapeproxy.tapes.rules import Rule, read_rules

type Matching = Literal["lane", "any"]
type OnDrift = Literal["fail", "report"]


def check_words(*, match: str = "lane", on_drift: str = "fail") -> None:
    """Raises UsageError: a wrong word would let pass what it should fail."""
    for name, word, kind in (("match", match, Matching), ("on_drift", on_drift, OnDrift)):
        known: tuple[str, ...] = get_args(kind.__value__)
        if word not in known:
            raise UsageError(f"{name} is {' or '.join(known)}, not {word!r}")


def rules_of(lines: Iterable[str]) -> tuple[Rule, ...]:
    """The rules that a caller gives, `KIND VALUE` each. Raises UsageError."""
    if isinstance(lines, str):
        raise UsageError(f"rules are a list of texts, not {lines!r}", fix=f"write [{lines!r}]")
    try:
        return read_rules(lines)
    except ValueError as error:
        raise UsageError(f"rules: {error}") from None
