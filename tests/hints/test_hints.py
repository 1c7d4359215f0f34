"""Where nothing is taped, hints do nothing. What type checkers know of them is in usage.py."""

import ast
import asyncio
import inspect
import pickle
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path

import pytest

from tapeproxy.hints import NotOnTapeError, ToolError, agent, final_state, message, received, tool, value

SOURCE = Path(__file__).parents[2] / "hints" / "__init__.py"


@tool
def add(a: int, b: int = 2, *, c: int = 3) -> int:
    """Add three numbers."""
    return a + b + c


@tool(name="elsewhere")
async def later(a: int) -> int:
    await asyncio.sleep(0)
    return a


@tool
def count(n: int) -> Iterator[int]:
    yield from range(n)


@tool
async def count_later(n: int) -> AsyncIterator[int]:
    for number in range(n):
        yield number


class Shop:
    rate = 2

    @tool
    def price(self, item: int) -> int:
        return item * self.rate

    @classmethod
    @tool
    def name(cls) -> str:
        return cls.__name__

    @tool
    @staticmethod
    def rebate(a: int) -> int:
        return a - 1


def test_marked_functions_do_what_they_did() -> None:
    async def all_of() -> list[int]:
        with agent("a"):
            return [await later(4), *[number async for number in count_later(3)]]

    assert (add(1), add(1, 1, c=1), [*count(3)], asyncio.run(all_of())) == (6, 3, [0, 1, 2], [4, 0, 1, 2])
    assert (Shop().price(3), Shop.name(), Shop.rebate(2), value("x", lambda: 5)) == (6, "Shop", 1, 5)
    assert asyncio.run(value("y", lambda: later(6))) == 6


def test_marked_functions_look_as_they_did() -> None:
    assert str(inspect.signature(add)) == "(a: int, b: int = 2, *, c: int = 3) -> int"
    assert (add.__name__, add.__doc__, pickle.loads(pickle.dumps(add))) == ("add", "Add three numbers.", add)
    kinds = [inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction]
    marked = [later, count, count_later]
    assert [[kind(function) for kind in kinds] for function in marked] == [
        [at == place for at in range(3)] for place in range(3)
    ]


def test_generators_take_what_is_sent_and_thrown_and_are_closed() -> None:
    heard: list[object] = []

    @tool
    def echo() -> Iterator[object]:
        try:
            while True:
                try:
                    heard.append((yield len(heard)))
                except KeyError as error:
                    heard.append(error.args[0])
        finally:
            heard.append("closed")

    generator = echo()
    assert isinstance(generator, type(n for n in ()))
    assert [next(generator), generator.send("a"), generator.throw(KeyError("b"))] == [0, 1, 2]
    generator.close()
    assert heard == ["a", "b", "closed"]


def test_asynchronous_generators_take_what_is_sent_and_thrown_and_are_closed() -> None:
    heard: list[object] = []

    @tool
    async def echo() -> AsyncGenerator[int, object]:
        try:
            while True:
                try:
                    heard.append((yield len(heard)))
                except KeyError as error:
                    heard.append(error.args[0])
        finally:
            heard.append("closed")

    async def talk() -> list[int]:
        generator = echo()
        said = [await anext(generator), await generator.asend("a"), await generator.athrow(KeyError("b"))]
        await generator.aclose()
        return said

    assert asyncio.run(talk()) == [0, 1, 2]
    assert heard == ["a", "b", "closed"]


def test_an_agent_is_a_context_and_a_decorator() -> None:
    @agent("worker")
    def work(a: int) -> int:
        return a

    @agent("later")
    async def work_later(a: int) -> int:
        async with agent("inner"):
            return a

    assert (work(1), asyncio.run(work_later(2)), work.__name__) == (1, 2, "work")
    assert inspect.iscoroutinefunction(work_later)
    with agent("outer") as outer, outer:
        message("worker", object())
        received("worker")
        final_state(object())


def test_errors_are_of_one_family() -> None:
    assert issubclass(NotOnTapeError, ToolError)


@pytest.mark.parametrize("sure", ["3.9", "3.14"])
def test_the_file_is_for_every_python_and_needs_nothing(sure: str) -> None:
    major, minor = sure.split(".")
    tree = ast.parse(SOURCE.read_text(), feature_version=(int(major), int(minor)))
    nodes = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    loaded = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    assert (loaded, [node.module for node in nodes if isinstance(node, ast.ImportFrom)]) == (["sys"], ["__future__"])


def test_importing_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import tapeproxy.hints; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['__future__', 'tapeproxy', 'tapeproxy.hints']\n"
