"""Regular expressions that rewrite a request before it is compared; knows which are too dangerous to run.

A tape may bring a stranger's expressions, and a careless one can take hours on one request: those that repeat a group
in which something is optional, repeated or a choice (`(a+)+`, `(a|a)*`, `(a?){20}`) are refused. What is left takes
time that grows with a power of the text's length, never exponentially.
"""

import re
from dataclasses import dataclass, field
from typing import Final

LONGEST: Final = 1000
"""Characters of an expression."""
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[aiLmsux-]+\)|\(\?#[^)]*\)|\(\?P=\w+\)"
    r"|\((?:\?(?:[aiLmsux-]*:|P<\w+>|[=!>]|<[=!]))?|\)|\||[*+?]|\{\d*,?\d*\}|.",
    re.DOTALL,
)
_WORD = re.compile(r"\\.|[^\\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Every match of `pattern` becomes `replacement`, which may refer to groups (`\\1`). Raises ValueError."""

    pattern: str
    replacement: str
    _compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shown = repr(self.pattern[:80])
        if reason := danger(self.pattern):
            raise ValueError(f"the regular expression {shown} {reason}")
        try:
            compiled = re.compile(self.pattern)
            re.compile(f"{self.pattern}|").sub(self.replacement, "")  # the replacement is read when there is a match
        except (re.error, IndexError, OverflowError, RecursionError) as error:
            raise ValueError(f"{shown} or its replacement cannot be understood: {error}") from None
        object.__setattr__(self, "_compiled", compiled)

    def __str__(self) -> str:
        return f"{_escaped(self.pattern)}={_escaped(self.replacement)}"

    def __call__(self, data: bytes) -> bytes:
        """`data`, UTF-8 or not, rewritten."""
        text = data.decode(errors="surrogateescape")
        return self._compiled.sub(self.replacement, text).encode(errors="surrogateescape")


def parse_rewrite(text: str) -> Rewrite:
    r"""Read REGEX=REPLACEMENT; a `=` that belongs to either is written `\=`. Raises ValueError."""
    sides = [""]
    for word in _WORD.findall(text):
        if word == "=":
            sides.append("")
        else:
            sides[-1] += "=" if word == "\\=" else word
    if len(sides) != 2 or not sides[0]:
        raise ValueError(
            f"a rewrite is REGEX=REPLACEMENT with one =, and \\= for every other one, but this is {text!r}"
        )
    return Rewrite(*sides)


def danger(pattern: str) -> str:
    """Why this expression is not run; empty when it may be."""
    if len(pattern) > LONGEST:
        return f"is longer than {LONGEST} characters"
    varies = [False]  # for each open group: whether it can match in more ways than one
    closed = repeated = False  # whether a group that varies, or a repeat, has just ended
    for token in _TOKEN.findall(pattern):
        if repeated and token in ("?", "+"):
            repeated = False  # *? and *+: how it repeats, not how often
            continue
        repeat = token in ("*", "+") or (token[0] == "{" and token not in ("{", "{1}", "{0,1}"))
        if repeat and closed:
            return "repeats a group that holds a repeat or a choice, which can take for ever; say it without the group"
        if re.match(r"\(\?[a-zA-Z-]*x", token):
            return "has the flag x, which is not understood here"
        repeated = repeat or token == "?"
        if repeat or token in ("?", "|"):
            varies[-1] |= not re.fullmatch(r"\{\d+\}", token)
        closed = False
        if token == ")" and len(varies) > 1:
            closed = varies.pop()
            varies[-1] |= closed
        elif token.startswith("(") and not token.endswith(")"):
            varies.append(False)
    return ""


def _escaped(side: str) -> str:
    return "".join("\\=" if word == "=" else word for word in _WORD.findall(side))
