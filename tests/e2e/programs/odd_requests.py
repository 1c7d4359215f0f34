"""Requests that are hard to know again: odd queries, bodies, boundaries, orders; resets and redirects."""

import io
import json
import random
import tarfile
import threading
import uuid

import httpx

URL = "https://search.example.com"
client = httpx.Client(timeout=30)


def show(name: str, reply: httpx.Response) -> None:
    print(name, reply.status_code, len(reply.content), reply.text[:80].replace("\n", " "), flush=True)


def parallel() -> None:
    """Answered in the reverse of the order in which they were sent."""
    replies: dict[int, str] = {}

    def one(n: int) -> None:
        replies[n] = httpx.get(f"{URL}/slow", params={"n": n}, timeout=30).text

    threads = [threading.Thread(target=one, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in sorted(replies):
        print("parallel", n, f'"{n}"' in replies[n], replies[n][:80], flush=True)


def multipart() -> None:
    """Twice, with a boundary that is random each time."""
    for _ in range(2):
        boundary = uuid.uuid4().hex
        body = f'--{boundary}\r\nContent-Disposition: form-data; name="f"\r\n\r\nsame\r\n--{boundary}--\r\n'
        headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
        show("multipart", client.post(f"{URL}/upload", content=body, headers=headers))
        show("files", client.post(f"{URL}/upload", files={"f": ("a", b"same", "text/plain")}))


def odd() -> None:
    """Key order, duplicate query values, charsets, binary bodies."""
    pairs = [("a", 1), ("b", [1, 2]), ("c", "0.00")]
    random.SystemRandom().shuffle(pairs)
    json_type = {"content-type": "application/json"}
    show("keys", client.post(f"{URL}/echo", content=json.dumps(dict(pairs)), headers=json_type))
    for query in ("x=1&x=2", "x=2&x=1", "x=1&x=1"):
        show(query, client.get(f"{URL}/echo?{query}"))
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    pdf = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n" + bytes(range(256)) + b"\n%%EOF\n"
    for kind, body in (
        ("application/octet-stream; charset=utf-8", b"\0\xff\r\n0\r\n\r\n"),
        ("application/x-tar", tar.getvalue()),
        ("text/csv; charset=windows-31j", "名前,値\r\n猫,1\r\n".encode("cp932")),
        ("application/pdf", pdf),
    ):
        show(kind, client.post(f"{URL}/echo", content=body, headers={"content-type": kind}))


def retry() -> None:
    """The first attempt is reset, the second has its answer."""
    for _ in range(2):
        try:
            show("retry", client.get(f"{URL}/flaky"))
        except httpx.TransportError as error:
            print("retry", type(error).__name__, flush=True)


def moved() -> None:
    """A redirect, followed and not."""
    show("moved", client.get(f"{URL}/moved"))
    reply = client.get(f"{URL}/moved", follow_redirects=True)
    show("followed", reply)
    print(reply.url, [step.headers["location"] for step in reply.history])


parallel()
multipart()
odd()
retry()
moved()
