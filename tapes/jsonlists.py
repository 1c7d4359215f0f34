"""A stream that is one JSON list, an item an event, as Gemini's is without `alt=sse`. Knows the list, not its items."""

from collections.abc import Iterator

from tapeproxy.tapes.jsonstrings import TOKEN


def whole_items(body: bytes) -> Iterator[tuple[int, int]]:
    """Where the objects and lists in the list `body` stand that came whole: `body[start:end]`, in order.

    The list may have been cut; what a cut text in it looks like is no JSON. What is no list has none. Never raises.
    """
    depth = start = 0
    for match in TOKEN.finditer(body):
        word = match[0]
        if not depth and word != b"[":
            return
        if word in (b"{", b"["):
            depth += 1
            start = match.start() if depth == 2 else start
        elif word in (b"}", b"]"):
            depth -= 1
            if depth == 1:
                yield start, match.end()
            elif not depth:
                return
