import asyncio

import aiohttp
import common


async def main() -> None:
    async with aiohttp.ClientSession(trust_env=True) as session:
        for url in common.GETS:
            async with session.get(url) as reply:
                print(reply.status, await reply.text())
        async with session.post(common.CHAT, data=common.BODY, headers=common.HEADERS) as stream:
            print(stream.status)
            async for data, _ in stream.content.iter_chunks():
                if data:  # the end of the body may come as an empty piece of its own, or not: a matter of packets
                    print(data)


asyncio.run(main())
