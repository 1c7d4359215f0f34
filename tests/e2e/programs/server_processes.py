"""A process asks two servers of its own, each in a process, at the same time; each asks the model before it answers."""

import http.server
import json
import subprocess
import sys
import threading
import urllib.request

MODEL = "https://api.openai.com/v1/chat/completions"


def ask(text: str) -> str:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(MODEL, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return str(json.load(response)["choices"][0]["message"]["content"])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = ask(f"{sys.argv[2]} {self.path}").encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


def serve() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


def main() -> None:
    names = ("alice", "bob")
    argv = [sys.executable, __file__, "serve"]
    servers = [subprocess.Popen([*argv, name], stdout=subprocess.PIPE, text=True) for name in names]
    ports = [server.stdout.readline().strip() for server in servers if server.stdout is not None]
    pairs = list(zip(names, ports, strict=True))
    plan = ask("plan")
    found: dict[str, str] = {}

    def call(name: str, port: str) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{plan}") as response:
            found[name] = response.read().decode()

    threads = [threading.Thread(target=call, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in servers:
        server.terminate()
        server.wait()
    print(ask(f"put together {found['alice']} and {found['bob']}"))


serve() if "serve" in sys.argv else main()
