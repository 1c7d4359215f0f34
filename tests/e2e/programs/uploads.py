"""Multipart uploads: the boundary is another one every time."""

import io
import time

import httpx
import requests

URL = "https://search.example.com/upload"
text = f"made at {time.time_ns()}".encode()
print(text)
print(httpx.post(URL, files={"file": ("a.txt", io.BytesIO(text), "text/plain")}, data={"n": "1"}).text)
print(requests.post(URL, files={"file": ("a.txt", text, "text/plain")}, data={"n": "1"}, timeout=30).text)
