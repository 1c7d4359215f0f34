"""Makes redaction tokens plain to people: `tpxabr…` says nothing to one who has not read about them."""

from tapeproxy.tapes.tokens import replace_tokens

_SHOWN = 11
"""Characters of a token: its mark, its length and 25 bits of hash, enough to tell one secret from another."""


def mark(text: str) -> str:
    """`text` with every token as `[redacted tpxabrq7k2m…]`; equal secrets look alike."""
    if "tpx" not in text:
        return text
    return replace_tokens(text.encode(errors="surrogatepass"), _marked).decode(errors="surrogatepass")


def _marked(token: bytes) -> bytes:
    return b"[redacted %b\xe2\x80\xa6]" % token[:_SHOWN]
