"""Prints what it knows of its machine into requests, as agents do into prompts. Standard library only, any Python."""

import json
import platform
import socket
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

URL = "https://search.example.com"
FORM = "application/x-www-form-urlencoded"


def ask(path: str, body: bytes, kind: str) -> None:
    request = urllib.request.Request(URL + path, body, {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=30) as reply:
        print(path.partition("?")[0], reply.read().decode(), flush=True)


cwd, home = str(Path.cwd()), str(Path.home())
server = socket.create_server(("127.0.0.1", 0))
here = f"""You work in {cwd}.
Read {cwd}/README.md, keep notes in {home}/.notes and {tempfile.gettempdir()}.
System: {platform.platform()}, Python {platform.python_version()} on {socket.gethostname()}.
Tools are at http://127.0.0.1:{server.getsockname()[1]}/mcp."""
arguments = json.dumps({"path": f"{cwd}/a.py", "command": f"cd {cwd}\nls"})
messages = [{"role": "system", "content": here}, {"role": "tool", "arguments": arguments}]
ask("/chat", json.dumps({"files": {cwd: 1, "/etc": 2}, "messages": messages}).encode(), "application/json")
ask("/form", urllib.parse.urlencode({"cwd": cwd, "x": "1"}).encode(), FORM)
ask("/files?" + urllib.parse.urlencode({"root": home}), here.encode(), "text/plain; charset=utf-8")
