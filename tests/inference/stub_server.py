"""A chat-completions server that misbehaves as it is told; run it as a process of its own.

Usage: ``stub_server.py '{"faults": ["http 429", ""], "latency_s": 0}'``. Prints its port. The
faults are gone through per question: the first try of each meets the first fault, and so on; an
empty one or none left is a good answer. A question with the word BAD always gets a 400.
``GET /stats`` says what was asked.
"""

import base64
import io
import json
import sys
import threading
import time
from collections import Counter
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from PIL import Image


def reply_to(text: str) -> str:
    """What the server says to a question: a letter that depends on the text alone."""
    return "ABCD"[sha256(text.encode()).digest()[0] % 4]


class State:
    """What the server was told, and what happened."""

    def __init__(self, plan: dict) -> None:
        self.plan = plan
        self.tries = Counter()
        self.order = []
        self.active = self.most_active = 0
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, *_):
        pass

    def do_GET(self):
        state = self.state
        with state.lock:
            stats = {"tries": state.tries, "most_active": state.most_active, "order": state.order}
            data = json.dumps(stats).encode()
        self.answer(200, data)

    def do_POST(self):
        state = self.state
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = body["messages"][-1]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = next(p["text"] for p in parts if p["type"] == "text")
        urls = [p["image_url"]["url"] for p in parts if p["type"] == "image_url"]
        with state.lock:
            attempt = state.tries[text]
            state.tries[text] += 1
            state.active += 1
            state.most_active = max(state.most_active, state.active)
        try:
            faults = state.plan.get("faults", [])
            self.misbehave(faults[attempt] if attempt < len(faults) else "", body, text, urls)
        finally:
            with state.lock:
                state.active -= 1

    def misbehave(self, fault, body, text, urls):
        state = self.state
        time.sleep(state.plan.get("latency_s", 0))
        if "BAD" in text:
            return self.fail(400, "the picture is too large")
        if body["model"] != "stub":
            return self.fail(404, f"no model {body['model']}")
        if state.plan.get("key") and self.headers["authorization"] != f"Bearer {state.plan['key']}":
            return self.fail(401, "wrong key")
        if "max_tokens" in body and state.plan.get("new_limit"):
            return self.fail(400, "'max_tokens' is not supported, use 'max_completion_tokens'")
        if fault.startswith("http "):
            return self.fail(int(fault[5:]), "as told", {"retry-after": "0.05"})
        if fault == "hang":
            time.sleep(state.plan.get("hang_s", 5))
            return None
        if fault == "cut":
            self.send_response(200)
            self.send_header("content-length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.wfile.flush()
            self.close_connection = True
            return None
        if fault == "garbage":
            return self.answer(200, b"<html>it works!</html>")
        if fault == "empty":
            return self.answer(200, b'{"choices": []}')
        sizes = []
        for url in urls:
            data = base64.b64decode(url.partition("base64,")[2])
            with Image.open(io.BytesIO(data)) as image:
                sizes.append([*image.size, len(data), image.format])
        with state.lock:
            state.order.append(text)
        said = {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": "stub",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {
                        "role": "assistant",
                        "content": json.dumps(
                            {
                                "sizes": sizes,
                                "roles": [m["role"] for m in body["messages"]],
                                "temperature": body["temperature"],
                            }
                        )
                        if state.plan.get("tell")
                        else reply_to(text),
                    },
                }
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8},
        }
        return self.answer(200, json.dumps(said).encode())

    def fail(self, status, message, headers=None):
        self.answer(status, json.dumps({"error": {"message": message}}).encode(), headers)

    def answer(self, status, data, headers=None):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def main() -> None:
    Handler.state = State(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    with Server(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
