"""numpy's generators, seeded by nobody, in the main thread and in a pool, and what they give in questions."""

# What is imported is in the agents' own environment (.venv-soak).
# pyright: reportMissingImports=false
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np

URL = "https://search.example.com/search"


def ask(who: str) -> str:
    drawn = np.random.default_rng().random(3).tolist()
    reply = httpx.get(URL, params={"q": f"{who} {drawn} {time.time()}"}, timeout=30)
    return str(reply.json()["query"])


print(np.random.default_rng(7).random(), np.random.RandomState(7).rand())
print(np.random.rand(), np.random.randint(10**9), np.random.RandomState().rand())
print(np.random.permutation(8).tolist(), np.random.Generator(np.random.PCG64()).normal())
print(np.random.SeedSequence().entropy)
print(ask("main"))
with ThreadPoolExecutor(2) as pool:
    print(list(pool.map(ask, ["a", "b", "c"])))
