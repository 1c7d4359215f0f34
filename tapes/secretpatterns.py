"""What secrets look like whatever they are called: a table of key formats with their sources, and where they stand.

Knows formats, not redaction. Every format has a `mark` that stands at its beginning; where one stands is a
run of at least `RUN` word characters not far behind the mark, which is how they are looked for in big bodies.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Final

RUN: Final = 16
"""The shortest run of word characters that is looked at."""
MOST: Final = 16 << 10
"""Bytes that a secret found by its look may have; a private key of 8192 bits has 6.4 KB."""
_WORD: Final = b"A-Za-z0-9_+/.~-"
WORD_CHARACTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/.~-")
# Before a key stands no letter of another word; but the n of \n, or the 0 of %20, is none.
_BEGINS = re.compile(rb"(?:^|[^A-Za-z0-9_-]|\\[nrtbf]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})\Z")
_BEFORE = 6


@dataclass(frozen=True, slots=True)
class Format:
    """A secret that begins with `mark` at the beginning of a word (`inside`: anywhere).

    `shape` matches from the mark on; the secret is its group `s`, or all of it. `going`: what it may go on with while
    it is not whole, as a regular expression that matches to the end of the text. `source`: who says so.
    """

    mark: bytes
    shape: bytes
    going: bytes
    source: str
    inside: bool = False
    holds: Callable[[bytes], bool] = field(default=lambda _: True)

    def find(self, text: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
        """Where in `text`, from `start` on, such secrets stand."""
        shape = _compiled(self.shape)
        after = start
        for at in self._marks(text, start):
            match = shape.match(text, at) if at >= after else None  # or xoxb-xoxb-xoxb- would take for ever
            if match is None:
                continue
            after = match.end()
            group = "s" if "s" in shape.groupindex else 0
            if self.holds(match[group]):
                yield match.span(group)

    def open_at(self, text: bytes, start: int) -> int | None:
        """Where one begins, at or after `start`, that goes on to the end of `text`, and may go on after it."""
        for at in self._marks(text, start):
            if _compiled(self.going).match(text, at):
                return at
        return None

    def _marks(self, text: bytes, start: int) -> Iterator[int]:
        at = text.find(self.mark, start)
        while at >= 0:
            if self.inside or _BEGINS.search(text[max(at - _BEFORE, 0) : at]):
                yield at
            at = text.find(self.mark, at + 1)


def _varied(value: bytes) -> bool:
    """Letters and digits: not the words of `sk-learn-and-some-more-words`."""
    return re.search(rb"[0-9]", value) is not None and re.search(rb"[A-Za-z]", value) is not None


def _is_pair(value: bytes) -> bool:
    """Base64 of `user:password`."""
    try:
        return b":" in base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return False


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    # All of them take 5 ms, and most texts have the mark of none.
    return re.compile(pattern)


def _key(mark: str, body: str, source: str, *, inside: bool = False) -> Format:
    head = re.escape(mark.encode())
    # One that is whole ends where its characters do, so it is not known to be whole before.
    going = head + rb"[" + _WORD + rb"]*\Z"
    return Format(mark.encode(), head + body.encode(), going, source, inside, _varied)


WORDS: Final = (
    _key("sk-", r"[A-Za-z0-9_-]{20,}", "the API key pages of OpenAI, Anthropic, DeepSeek and OpenRouter"),
    _key("sk-proj-", r"[A-Za-z0-9_-]{20,}", "platform.openai.com/api-keys", inside=True),
    _key("sk-ant-", r"[A-Za-z0-9_-]{20,}", "console.anthropic.com/settings/keys", inside=True),
    _key("sk_live_", r"[A-Za-z0-9]{16,}", "docs.stripe.com/keys", inside=True),
    _key("sk_test_", r"[A-Za-z0-9]{16,}", "docs.stripe.com/keys", inside=True),
    _key("rk_live_", r"[A-Za-z0-9]{16,}", "docs.stripe.com/keys", inside=True),
    _key("rk_test_", r"[A-Za-z0-9]{16,}", "docs.stripe.com/keys", inside=True),
    _key("whsec_", r"[A-Za-z0-9+/=]{24,}", "docs.stripe.com/webhooks", inside=True),
    _key("sess-", r"[A-Za-z0-9]{32,}", "OpenAI session keys"),
    _key("AIza", r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", "cloud.google.com/docs/authentication/api-keys"),
    _key("ya29.", r"[A-Za-z0-9_-]{20,}", "developers.google.com/identity/protocols/oauth2"),
    _key("GOCSPX-", r"[A-Za-z0-9_-]{20,}", "Google OAuth client secrets", inside=True),
    _key("ghp_", r"[A-Za-z0-9]{36,}", "docs.github.com: about authentication, token formats", inside=True),
    _key("gho_", r"[A-Za-z0-9]{36,}", "docs.github.com: about authentication, token formats", inside=True),
    _key("ghu_", r"[A-Za-z0-9]{36,}", "docs.github.com: about authentication, token formats", inside=True),
    _key("ghs_", r"[A-Za-z0-9]{36,}", "docs.github.com: about authentication, token formats", inside=True),
    _key("ghr_", r"[A-Za-z0-9]{36,}", "docs.github.com: about authentication, token formats", inside=True),
    _key("github_pat_", r"[A-Za-z0-9_]{22,}", "docs.github.com: fine-grained tokens", inside=True),
    _key("glpat-", r"[A-Za-z0-9_.-]{20,}", "docs.gitlab.com: token prefixes", inside=True),
    _key("AKIA", r"[A-Z2-7]{16}(?![A-Z0-9])", "docs.aws.amazon.com: IAM unique identifiers"),
    _key("ASIA", r"[A-Z2-7]{16}(?![A-Z0-9])", "docs.aws.amazon.com: IAM unique identifiers"),
    _key("ABSK", r"[A-Za-z0-9+/]{40,}={0,2}", "docs.aws.amazon.com: Bedrock API keys"),
    _key("xoxb-", r"[A-Za-z0-9-]{20,}", "api.slack.com/authentication/token-types", inside=True),
    _key("xoxp-", r"[A-Za-z0-9-]{20,}", "api.slack.com/authentication/token-types", inside=True),
    _key("xoxa-", r"[A-Za-z0-9-]{20,}", "api.slack.com/authentication/token-types", inside=True),
    _key("xoxr-", r"[A-Za-z0-9-]{20,}", "api.slack.com/authentication/token-types", inside=True),
    _key("xoxs-", r"[A-Za-z0-9-]{20,}", "api.slack.com/authentication/token-types", inside=True),
    _key("xapp-", r"[A-Za-z0-9-]{20,}", "api.slack.com/authentication/token-types", inside=True),
    _key("hf_", r"[A-Za-z0-9]{30,}", "huggingface.co/docs/hub/security-tokens"),
    _key("gsk_", r"[A-Za-z0-9]{40,}", "console.groq.com/keys"),
    _key("xai-", r"[A-Za-z0-9]{40,}", "docs.x.ai"),
    _key("pplx-", r"[A-Za-z0-9]{40,}", "docs.perplexity.ai"),
    _key("r8_", r"[A-Za-z0-9]{37,}", "replicate.com/docs: API tokens"),
    _key("tvly-", r"[A-Za-z0-9-]{20,}", "docs.tavily.com"),
    _key("lsv2_", r"[A-Za-z0-9_]{40,}", "docs.smith.langchain.com", inside=True),
    _key("npm_", r"[A-Za-z0-9]{36,}", "npm, access tokens"),
    _key("pypi-", r"[A-Za-z0-9_-]{50,}", "PyPI, API tokens"),
    _key("dop_v1_", r"[a-f0-9]{64}", "docs.digitalocean.com: API tokens", inside=True),
    _key("SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", "docs.sendgrid.com: API keys"),
    _key("eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}", "JWT: RFC 7519, RFC 7515"),
    _key("eyJ", r"[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){4}", "JWE: RFC 7516"),
)
"""Formats that are one run of word characters."""

_PEM: Final = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_GAP: Final = rb"(?:\s|\\{1,8}[nr]){0,8}"
_BASE64: Final = rb"(?:[^-]|-(?!----))"  # and DEK-Info: AES-128-CBC
PEM: Final = Format(
    b"-----BEGIN ",
    _PEM + _GAP + rb"(?P<s>" + _BASE64 + rb"{1,%d}?)" % MOST + _GAP + rb"-----END",
    rb"-----BEGIN (?:[A-Z0-9 ]{0,60}|[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{0,5}" + _BASE64 + rb"*(?:-{0,5}\w{0,3}))\Z",
    "PEM: RFC 7468",
    inside=True,
)
BROKEN_PEM: Final = re.compile(_PEM + rb"(" + _BASE64 + rb"{8,})\Z")

SPACED: Final = (
    PEM,
    Format(
        b"Basic ",
        rb"Basic (?P<s>[A-Za-z0-9+/]{14,}={0,2})(?![A-Za-z0-9+/=])",
        rb"Basic [A-Za-z0-9+/]*={0,2}\Z",
        "RFC 7617",
        holds=_is_pair,
    ),
    Format(
        b"Bearer ",
        rb"Bearer (?P<s>[A-Za-z0-9._~+/-]{16,}=*)",
        rb"Bearer [A-Za-z0-9._~+/-]*=*\Z",
        "RFC 6750",
        holds=_varied,
    ),
    Format(
        b":AA",
        rb":(?P<s>AA[A-Za-z0-9_-]{32,34})(?![A-Za-z0-9_-])",
        rb":AA[A-Za-z0-9_-]{0,34}\Z",
        "core.telegram.org/bots/api: bot tokens",
        inside=True,
    ),
    *(
        Format(
            mark,
            mark + rb"[\"'\\]*\s*[:=]\s*[\"'\\]*(?P<s>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
            mark + rb"[\"'\\]*\s*[:=]?\s*[\"'\\]*[A-Za-z0-9/+]{0,40}\Z",
            "docs.aws.amazon.com: secret access keys",
            inside=True,
        )
        for mark in (b"secret_access_key", b"SECRET_ACCESS_KEY", b"SecretAccessKey", b"secretAccessKey")
    ),
)
"""Formats with other characters than those of words."""

INSIDE_URLS: Final = Format(
    b"://",
    rb"://[^/\s:@\"'\\<>]{0,100}:(?P<s>[^/\s@\"'\\<>{}$]{3,200})@",
    rb"://[^/\s:@\"'\\<>]{0,100}(?::[^/\s@\"'\\<>{}$]{0,200})?\Z",
    "user information: RFC 3986, 3.2.1",
    inside=True,
)
"""A password in a URL."""

FORMATS: Final = (*WORDS, *SPACED)
