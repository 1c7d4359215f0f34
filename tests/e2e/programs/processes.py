"""Children of every kind, each with a clock, chance and requests of its own."""

import multiprocessing
import os
import random
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import uuid

CHILD = "import random, time, uuid; print(random.random(), time.time(), uuid.uuid4())"


def fetch(who: str) -> str:
    query = urllib.parse.urlencode({"q": f"{who} {random.random()} {time.time()} {uuid.uuid4()}"})
    with urllib.request.urlopen(f"https://search.example.com/search?{query}", timeout=30) as reply:
        return reply.read().decode()


if __name__ == "__main__":
    print(fetch("parent"))
    for _ in range(2):
        print(subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True).stdout)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.apply(fetch, (method,)))
    pid = os.fork()
    if pid == 0:
        print("forked", fetch("forked"), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    print(fetch("parent again"))
