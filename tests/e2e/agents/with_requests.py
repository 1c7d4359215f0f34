import common
import requests

with requests.Session() as session:
    for url in common.GETS:
        reply = session.get(url, timeout=30)
        print(reply.status_code, reply.text)
    with session.post(common.CHAT, data=common.BODY, headers=common.HEADERS, stream=True, timeout=30) as stream:
        print(stream.status_code, *stream.iter_content(chunk_size=None), sep="\n")
