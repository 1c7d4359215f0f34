"""Two streams at once: the async Anthropic client, one answer for each of two questions.

usage: python anthropic_stream_async.py [PROMPT]
"""

import asyncio
import sys

from anthropic import AsyncAnthropic


async def ask(client: AsyncAnthropic, question: str) -> str:
    pieces = []
    async with client.messages.stream(
        model="claude-haiku-4-5",
        max_tokens=500,
        messages=[{"role": "user", "content": question}],
    ) as stream:
        async for text in stream.text_stream:
            pieces.append(text)
    return f"{len(pieces)} pieces: {''.join(pieces)}"


async def main() -> None:
    prompt = sys.argv[1] if len(sys.argv) > 1 else "Should a run be recorded?"
    questions = [f"{prompt} Argue for it.", f"{prompt} Argue against it."]
    async with AsyncAnthropic() as client:
        answers = await asyncio.gather(*(ask(client, question) for question in questions))
    for question, answer in zip(questions, answers, strict=True):
        print(f"{question}\n  {answer}")


if __name__ == "__main__":
    asyncio.run(main())
