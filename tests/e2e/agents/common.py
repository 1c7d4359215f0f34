"""What every client agent here asks for: two hosts, GET and POST, a repeat, a 404, a stream."""

import json

SEARCH = "https://search.example.com/search?q=tide&q=moon"
MISSING = "https://search.example.com/pages/no-such-page"
CHAT = "https://api.openai.com/v1/chat/completions"
QUESTION = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "Count to five, please."}]}
BODY = json.dumps(QUESTION)
HEADERS = {"content-type": "application/json", "authorization": "Bearer sk-test-0123456789abcdefghij"}
GETS = (SEARCH, SEARCH, MISSING)
