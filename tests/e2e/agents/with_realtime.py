"""OpenAI Realtime by its SDK, in a thread and in a loop: text, sound sent while the model talks, and an error."""

import asyncio
import base64
from typing import Any

import openai


def talk() -> None:
    with openai.OpenAI().realtime.connect(model="gpt-realtime") as session:
        print(session.recv().to_json(indent=None))
        session.conversation.item.create(
            item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello there"}]}
        )
        session.response.create()
        for event in session:
            print(event.to_json(indent=None))
            if event.type == "response.done":
                break
        nonsense: Any = {"type": "nonsense"}
        session.send(nonsense)
        print(session.recv().to_json(indent=None))


async def speak() -> None:
    async with openai.AsyncOpenAI().realtime.connect(model="gpt-realtime") as session:
        print((await session.recv()).to_json(indent=None))
        await session.session.update(session={"type": "realtime", "output_modalities": ["audio"]})

        async def microphone() -> None:
            for piece in range(20):
                await session.input_audio_buffer.append(audio=base64.b64encode(bytes([piece]) * 480).decode())
                await asyncio.sleep(0.001)
            await session.input_audio_buffer.commit()
            await session.response.create()

        listening = asyncio.create_task(microphone())
        async for event in session:
            print(event.to_json(indent=None))
            if event.type == "response.done":
                break
        await listening


talk()
asyncio.run(speak())
