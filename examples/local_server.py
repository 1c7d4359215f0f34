"""An agent with a tool server of its own: it listens on a loopback port and calls it over HTTP, as with a local MCP.

usage: python local_server.py [PROMPT]
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import httpx
from openai import OpenAI
from openai.types.responses import FunctionToolParam, ResponseInputParam

STOCK = {"tape": 12, "reel": 3}
SCHEMA = {"type": "object", "properties": {"item": {"enum": list(STOCK)}}, "required": ["item"]}
TOOL: FunctionToolParam = {"type": "function", "name": "stock", "parameters": SCHEMA, "strict": False}


class ToolServer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        item = parse_qs(urlsplit(self.path).query)["item"][0]
        body = json.dumps({"item": item, "count": STOCK[item]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass  # the output is the agent's


def main() -> None:
    prompt = sys.argv[1] if len(sys.argv) > 1 else "How much tape is left?"
    server = ThreadingHTTPServer(("127.0.0.1", 0), ToolServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    items: ResponseInputParam = [{"role": "user", "content": prompt}]
    with OpenAI() as client, httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}") as tools:
        while True:
            response = client.responses.create(model="gpt-4o-mini", input=items, tools=[TOOL], store=False)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            for call in calls:
                call_id, name, arguments = call.call_id, call.name, call.arguments
                result = tools.get("/stock", params=json.loads(arguments)).text
                print(f"{name} {arguments} -> {result}")
                items.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments})
                items.append({"type": "function_call_output", "call_id": call_id, "output": result})
    print(response.output_text)
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
