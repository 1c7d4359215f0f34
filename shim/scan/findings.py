"""What a scan says: rules, and findings that break them. Values only."""

from dataclasses import dataclass
from typing import Any, Literal

type Level = Literal["error", "warning", "note"]
"""`error`: differs in every replay. `warning`: may differ, by timing or on another machine. `note`: good to know."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding. `code` is stable and never reused; `why` and `fix` are sentences for people."""

    code: str
    level: Level
    title: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A place that breaks a rule. `line`, `column` count from 1; `what` names the thing found; `text`: the line."""

    rule: Rule
    file: str
    line: int
    column: int
    what: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.rule.code,
            "level": self.rule.level,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "what": self.what,
            "text": self.text,
            "why": self.rule.why,
            "fix": self.rule.fix,
        }
