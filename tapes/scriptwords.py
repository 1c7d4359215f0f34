"""Programs within a command line (`sh -c '…'`, `python -c '…'`): where their text gives a secret's name a value.

Only the value is one: whoever takes all that follows the first `=` for it leaves another program, which a replay runs.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tapeproxy.tapes.secretvars import is_secret_name

_SHELL: Final = re.compile(r"(ba|da|z|k|a|fi)?sh(\.exe)?")
_LANGUAGE: Final = re.compile(r"(python|pypy|node|nodejs|deno|bun|ruby|perl|php|lua|Rscript)[\d.]*(\.exe)?")
_FLAG: Final = re.compile(r"-[A-Za-z]*[cep]|--(eval|print|command)|eval")
_OPTION: Final = re.compile(rb"-{0,2}[A-Za-z0-9_.-]+")
_QUOTED: Final = rb"\"(?:[^\"\\\n]|\\.)+\"|'(?:[^'\\\n]|\\.)+'"
_LITERAL: Final = re.compile(rb"(?<![\w.-])([A-Za-z_][\w.-]*)(?:\s*:\s*\w+)?\s*=\s*(%b)" % _QUOTED)
_ASSIGNED: Final = re.compile(rb"(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]*)=(%b|[^\s;&|<>()'\"]+)" % _QUOTED)


def is_option(name: bytes) -> bool:
    """Whether a word can begin so for all behind its `=` to be a value: --api-key, DB_PASSWORD; text is no option."""
    return _OPTION.fullmatch(name) is not None


def is_script(words: Sequence[str], index: int) -> bool:
    """Whether this word is a program for the interpreter before it: `python -u -c WORD`. Words of a file are none."""
    if index == 0 or not _FLAG.fullmatch(words[index - 1]):
        return False
    for word in reversed(words[: index - 1]):
        if not word.startswith("-"):
            return any(pattern.fullmatch(_program(word)) for pattern in (_SHELL, _LANGUAGE))
    return False


def assigned_values(before: Sequence[str], text: bytes) -> Iterator[tuple[int, int]]:
    """Where values of secret names stand in the text of a word, without their quotes. `before`: the words before it.

    In a program of a language only literals are: `token = find()` stays as it is. Elsewhere, in shells and in prompts,
    a value also ends at a blank.
    """
    interpreters = [name for one in before if _SHELL.fullmatch(name := _program(one)) or _LANGUAGE.fullmatch(name)]
    language = bool(interpreters) and _LANGUAGE.fullmatch(interpreters[-1]) is not None
    for match in (_LITERAL if language else _ASSIGNED).finditer(text):
        name = match[1].decode("latin-1").strip("-").replace("-", "_")
        if is_secret_name(name):
            start, end = match.span(2)
            quoted = match[2][:1] in (b'"', b"'")
            yield start + quoted, end - quoted


def _program(word: str) -> str:
    return re.split(r"[/\\]", word)[-1]
