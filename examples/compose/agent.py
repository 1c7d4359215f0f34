"""An agent that knows nothing of tapeproxy: its environment leads it there."""

import json
import os
import urllib.request

question = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "What is in a container?"}]}
request = urllib.request.Request(
    "https://api.openai.com/v1/chat/completions",
    data=json.dumps(question).encode(),
    headers={"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)["choices"][0]["message"]["content"])
