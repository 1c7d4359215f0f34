"""The synthesizer of the team: writes up the notes that it is sent over HTTP.

usage: python synthesizer.py
"""

from parts import ask_model, serve_one

from tapeproxy.hints import agent, message, received


def main() -> None:
    with agent("synthesizer"):

        def write_up(notes: str) -> str:
            received("planner")
            answer = ask_model(f"Write up: {notes}")
            message("planner", answer)
            return answer

        serve_one(write_up)


if __name__ == "__main__":
    main()
