import common
import httpx

with httpx.Client() as client:
    for url in common.GETS:
        reply = client.get(url)
        print(reply.status_code, reply.text)
    with client.stream("POST", common.CHAT, content=common.BODY, headers=common.HEADERS) as stream:
        print(stream.status_code, *stream.iter_raw(), sep="\n")
