"""Characters that act on whoever shows them, or that cannot be seen; knows Unicode, no terminal and no markup."""

import json
import re
from collections.abc import Callable
from typing import Final

# Controls (Cc), surrogates (Cs), line separators (Zl, Zp) and all invisible formatting (Cf) but the two joiners that
# emoji and Indic scripts need, and the signs of Arabic and Syriac that can be seen.
_HOSTILE: Final = (
    "\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\\ud800-\\udfff\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
HOSTILE: Final = re.compile(f"[{_HOSTILE}]")
HOSTILE_IN_BLOCK: Final = re.compile(f"(?![\\t\\n])[{_HOSTILE}]")
"""The same in text of several lines: those and tabs may stay."""


def escape(match: re.Match[str]) -> str:
    r"""What shows in place of such a character: `\x1b`, `\u202e`."""
    return match[0].encode("unicode_escape").decode()


def spelled(text: str, form: Callable[[str], str] = str) -> str:
    """`text` with its lines kept, and `form` of the escape in place of each character that would act or hide."""
    return HOSTILE_IN_BLOCK.sub(lambda match: form(escape(match)), text.replace("\r\n", "\n"))


def spelled_json(text: str) -> str:
    r"""JSON text that says the same without such characters: `\u202e` as an escape of JSON's own."""
    return HOSTILE_IN_BLOCK.sub(lambda match: json.dumps(match[0])[1:-1], text)
