"""Secrets in the text of files and of programs' output: by the name they are assigned to, and by their shape.

Knows `NAME=value`, `name: value`, `"name": "value"`, netrc, and the prefixes that keys are known by; where text comes
from is nobody's business here. What an environment variable holds is found by `redaction`.
"""

import re

from tapeproxy.tapes.redaction import Redactor
from tapeproxy.tapes.secretvars import is_secret_name

_ASSIGNED = re.compile(
    rb"""(?P<name>[A-Za-z_][A-Za-z0-9_.-]{1,80})["']?[ \t]*(?:=|:=?)[ \t]*"""
    rb"""(?P<quote>["']?)(?P<value>[^\s"',;}\]]{6,4096})"""
)
_NETRC = re.compile(rb"\b(?:password|passwd)[ \t]+(?P<value>\S{6,})")
_SHAPES = re.compile(
    rb"\b(?:sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,}"
    rb"|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abposr]-[A-Za-z0-9-]{10,}|glpat-[A-Za-z0-9_-]{20}|hf_[A-Za-z0-9]{30,}"
    rb"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"
)
_PRIVATE = re.compile(
    rb"(?P<head>-----BEGIN [A-Z ]*PRIVATE KEY-----\s)(?P<value>[A-Za-z0-9+/=\s]+?)(?P<tail>\s?-----END )"
)
_IN_URL = re.compile(rb"(?P<head>[a-z]://[^/:@\s]*:)(?P<value>[^/@\s]{6,})(?=@)")
_PLAIN = re.compile(rb"\d{1,8}|true|false|null|none|[$<{%].*|os\.\S*|self\.\S*|\w+\(.*", re.IGNORECASE)


def redact_text(data: bytes, redactor: Redactor) -> bytes:
    """Replace every secret in the content of a file, known or found."""
    data = redactor.content(data)

    def whole(match: re.Match[bytes]) -> bytes:
        return redactor.secret(match[0])

    def part(match: re.Match[bytes]) -> bytes:
        start, end = match.start("value") - match.start(), match.end("value") - match.start()
        return match[0][:start] + redactor.secret(match["value"]) + match[0][end:]

    def assigned(match: re.Match[bytes]) -> bytes:
        value = match["value"]
        if not is_secret_name(match["name"].decode().replace("-", "_").replace(".", "_")) or _PLAIN.fullmatch(value):
            return match[0]
        return part(match)

    data = _PRIVATE.sub(part, data)
    data = _SHAPES.sub(whole, data)
    data = _IN_URL.sub(part, data)
    data = _NETRC.sub(part, data)
    return _ASSIGNED.sub(assigned, data)
