"""A streaming agent: Anthropic messages, printed as the words arrive.

usage: python anthropic_stream.py [PROMPT]
"""

import sys

from anthropic import Anthropic


def main() -> None:
    prompt = sys.argv[1] if len(sys.argv) > 1 else "Name one good thing about magnetic tape."
    client = Anthropic()
    with client.messages.stream(
        model="claude-haiku-4-5",
        max_tokens=500,
        messages=[{"role": "user", "content": prompt}],
    ) as stream:
        for text in stream.text_stream:
            print(text, end="", flush=True)
        print()
        usage = stream.get_final_message().usage
    print(f"tokens: {usage.input_tokens} in, {usage.output_tokens} out")


if __name__ == "__main__":
    main()
