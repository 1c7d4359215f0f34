"""A worker of the team: researches the one task that it is sent over HTTP.

usage: python worker.py NAME
"""

import sys

from parts import ask_model, serve_one

from tapeproxy.hints import agent, message, received


def main() -> None:
    with agent(sys.argv[1]):

        def research(task: str) -> str:
            received("planner")
            finding = ask_model(f"Research: {task}")
            message("planner", finding)
            return finding

        serve_one(research)


if __name__ == "__main__":
    main()
