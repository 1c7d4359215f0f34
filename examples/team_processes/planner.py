"""The team of team.py as four processes that talk over HTTP: this one plans, and starts the other three.

usage: python planner.py [QUESTION]
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from parts import Colleague, ask_model

from tapeproxy.hints import agent, final_state, message, received

WORKERS = ("worker_a", "worker_b")


def main() -> None:
    question = sys.argv[1] if len(sys.argv) > 1 else "Why are there two tides a day?"
    with agent("planner"):
        tasks = ask_model(f"Split into two tasks: {question}").split("; ")[:2]
        workers = [Colleague("worker.py", name) for name in WORKERS]
        for name, task in zip(WORKERS, tasks, strict=True):
            message(name, task)
        with ThreadPoolExecutor(len(workers)) as pool:
            findings = list(pool.map(Colleague.ask, workers, tasks))
        for name, finding in zip(WORKERS, findings, strict=True):
            received(name)
            print(f"{name}: {finding}")
        synthesizer = Colleague("synthesizer.py")
        message("synthesizer", findings)
        answer = synthesizer.ask(" ".join(findings))
        received("synthesizer")
    print(answer)
    final_state({"question": question, "answer": answer})


if __name__ == "__main__":
    main()
