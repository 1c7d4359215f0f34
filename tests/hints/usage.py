"""How hints are used: type checkers must take all of this but what is marked. Not run; `make types` checks it.

mypy's `warn_unused_ignores` makes a mark an error where nothing is wrong.
"""

import datetime
from collections.abc import AsyncIterator, Iterator

from tapeproxy.hints import agent, final_state, message, received, tool, value


@tool
def search(query: str, *, limit: int = 3) -> list[str]:
    return [query] * limit


@tool(name="other")
async def fetch(slug: str) -> bytes:
    return slug.encode()


@tool
def items() -> Iterator[int]:
    yield 1


@tool
async def later() -> AsyncIterator[int]:
    yield 1


@agent("worker")
def work(a: int) -> str:
    return str(a)


class Shop:
    @tool
    def price(self, item: str) -> float:
        return 1.0


async def main() -> None:
    async with agent("main"):
        message("worker", {"a": 1})
        received("worker")
        final_state([1])
        body: bytes = await fetch("a")
        async for number in later():
            print(number + 1, body)
        for number in items():
            print(number + 1)
        moment: datetime.date = value("today", datetime.date.today)
        fetched: bytes = await value("page", lambda: fetch("b"))
        print(moment, fetched)


def right() -> None:
    found: list[str] = search("a", limit=1)
    price: float = Shop().price("x")
    text: str = work(1)
    print(found, price, text)


def wrong() -> None:
    search(1)  # type: ignore[arg-type]  # wrong
    search("a", 3)  # type: ignore[call-arg]  # wrong
    work("a")  # type: ignore[arg-type]  # wrong
    cost: str = Shop().price("x")  # type: ignore[assignment]  # wrong
    agent(1)  # type: ignore[arg-type]  # wrong
    tool(name=1)  # type: ignore[call-overload]  # wrong
    tool()(5)  # type: ignore[type-var]  # wrong
    print(cost)
