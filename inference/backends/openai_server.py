"""A model behind any server that speaks OpenAI's chat completions: vLLM, SGLang, hosted ones.

A fixed number of workers take one request each, encode its pictures, ask, and wait until the reply
has been written; so never more than that is in memory or can get lost. Failures that may pass are
tried again with growing pauses, or after the pause that the server asks for. A server that fails
several times in a row is left alone for a while if there are others.
"""

import asyncio
import os
import queue
import random
import threading
import time
from collections.abc import Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any

import openai
from openai.types.chat import ChatCompletion

from soubench.builders.errors import PictureError, RunError
from soubench.inference.backends import Facts, failed
from soubench.inference.chat import Picture, Request, data_url, messages
from soubench.inference.run_folder import Reply, Size

RETRIED_STATUS = frozenset({408, 409, 429})
"""Besides all from 500 on."""
FATAL_STATUS = frozenset({401, 403, 404, 405})
"""Not the fault of any row: a wrong key, address or model."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_ASKED_PAUSE_S = 300.0
FAILURES_UNTIL_DOWN = 3
DOWN_S = 15.0
NO_KEY = "none"
"""Servers of one's own ask for no key, but the client insists on one."""


@dataclass(slots=True)
class _Server:
    url: str
    client: openai.AsyncOpenAI
    failures: int = 0
    down_until: float = 0.0


@dataclass(slots=True)
class _Servers:
    """Takes turns over the servers that are up."""

    servers: Sequence[_Server]
    turn: int = 0

    def next(self) -> _Server:
        """Return the next server that is up; if none is, the one that is up again first."""
        now = time.monotonic()
        n = len(self.servers)
        order = [self.servers[(self.turn + i) % n] for i in range(n)]
        self.turn = (self.turn + 1) % n
        up = next((s for s in order if s.down_until <= now), None)
        return up or min(order, key=lambda s: s.down_until)

    @staticmethod
    def note(server: _Server, *, good: bool) -> None:
        """Remember how it went; several failures in a row take a server out for a while."""
        server.failures = 0 if good else server.failures + 1
        if server.failures >= FAILURES_UNTIL_DOWN:
            server.down_until = time.monotonic() + DOWN_S
        elif good:
            server.down_until = 0.0


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why a try failed; ``pause_s`` is what the server asked for."""

    kind: str
    message: str
    pause_s: float | None = None
    retried: bool = True
    servers_fault: bool = True


@dataclass(slots=True)
class _Delivery:
    """A reply on its way to the writer, and the event by which its worker hears of its arrival."""

    reply: Reply
    written: asyncio.Event = field(default_factory=asyncio.Event)


class OpenAIBackend:
    """Answers with a model that servers hold.

    Args:
        model: Name that the servers know the model by.
        base_urls: Addresses up to ``/v1``; requests go to them in turn.
        concurrency: Requests on their way at a time.
        timeout_s: Longest wait for a reply.
        tries: How often a request is tried in all.
        max_new_tokens: Longest reply, in tokens.
        max_pixels: Larger pictures are scaled down before they are sent, in px.
        max_bytes: Larger files are sent as JPEG of at most this size.
        system_role: Send the system prompt as such; else before the user's text.
    """

    def __init__(
        self,
        model: str,
        base_urls: Sequence[str],
        *,
        concurrency: int = 16,
        timeout_s: float = 120.0,
        tries: int = 8,
        max_new_tokens: int = 1024,
        max_pixels: int | None = None,
        max_bytes: int = 10_000_000,
        system_role: bool = True,
    ) -> None:
        if not base_urls:
            raise RunError("--backend openai needs --base-url, such as http://localhost:8000/v1.")
        self.model, self.base_urls = model, tuple(base_urls)
        self.concurrency, self.timeout_s, self.tries = concurrency, timeout_s, tries
        self.max_new_tokens, self.max_pixels, self.max_bytes = max_new_tokens, max_pixels, max_bytes
        self.system_role = system_role
        self._limit_name = "max_tokens"

    @property
    def facts(self) -> Facts:
        """Return what pins the model and its settings; neither addresses nor keys."""
        return Facts(
            model={
                "name": self.model,
                "backend": "openai",
                "revision": None,
                "parameters": None,
                "dtype": None,
                "context": {
                    "system_role": self.system_role,
                    "max_pixels": self.max_pixels,
                    "max_bytes": self.max_bytes,
                },
            },
            decoding={
                "max_new_tokens": self.max_new_tokens,
                "do_sample": False,
                "temperature": 0,
            },
            machine={"servers": len(self.base_urls), "concurrency": self.concurrency},
            libraries=("openai", "pillow"),
        )

    def fed_size(self, picture: Picture) -> Size | None:
        """Return None: what a server makes of a picture cannot be known."""
        return None

    def replies(self, requests: Iterator[Request]) -> Generator[Reply]:
        """Answer every request, in the order in which the servers do."""
        results: queue.SimpleQueue[_Delivery | BaseException | None] = queue.SimpleQueue()
        loop = asyncio.new_event_loop()
        shared = _Shared(requests)
        work = loop.create_task(self._ask_all(shared, results))

        def run() -> None:
            asyncio.set_event_loop(loop)
            try:
                loop.run_until_complete(work)
                results.put(None)
            except asyncio.CancelledError:
                results.put(None)
            except BaseException as error:  # raised again where the replies are taken
                results.put(error)
            finally:
                loop.run_until_complete(loop.shutdown_default_executor())
                loop.close()

        thread = threading.Thread(target=run, name="openai", daemon=True)
        thread.start()
        try:
            while (result := results.get()) is not None:
                if isinstance(result, BaseException):
                    raise result
                yield result.reply
                with suppress(RuntimeError):  # the loop has stopped; its error is in the queue
                    loop.call_soon_threadsafe(result.written.set)
        finally:
            # Libraries have swallowed a cancellation that came just as an answer did; a worker
            # that goes on all the same must not wait for a writer that is gone.
            shared.closed = True
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(work.cancel)
            thread.join()

    async def _ask_all(
        self,
        requests: "_Shared",
        results: "queue.SimpleQueue[_Delivery | BaseException | None]",
    ) -> None:
        key = os.environ.get("OPENAI_API_KEY") or NO_KEY
        servers = _Servers(
            [
                _Server(
                    url,
                    openai.AsyncOpenAI(
                        api_key=key, base_url=url, timeout=self.timeout_s, max_retries=0
                    ),
                )
                for url in self.base_urls
            ]
        )
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.concurrency):
                    group.create_task(self._work(requests, servers, results))
        except* RunError as errors:
            raise errors.exceptions[0] from None
        finally:
            for server in servers.servers:
                await server.client.close()

    async def _work(
        self,
        requests: "_Shared",
        servers: _Servers,
        results: "queue.SimpleQueue[_Delivery | BaseException | None]",
    ) -> None:
        while (request := await asyncio.to_thread(requests.take)) is not None:
            delivery = _Delivery(await self._ask(request, servers, requests))
            results.put(delivery)
            if not requests.closed:
                await delivery.written.wait()

    async def _ask(self, request: Request, servers: _Servers, requests: "_Shared") -> Reply:
        """Ask until there is a reply or no hope."""
        question = request.question
        try:
            chat = await asyncio.to_thread(self._chat, request)
        except PictureError as error:
            return failed(question, error.reason, str(error), permanent=False)
        for attempt in range(1, self.tries + 1):
            server = servers.next()
            started = time.perf_counter()
            try:
                answer = await self._complete(server.client, chat)
                reply = _reply(request, answer, time.perf_counter() - started)
            except (openai.APIError, JSONDecodeError, _NoReplyError) as error:
                trouble = _trouble(error, server.url, self.model)
            else:
                servers.note(server, good=True)
                return reply
            if not trouble.retried:
                return failed(question, trouble.kind, trouble.message, permanent=True)
            # A server that is busy and says so is up.
            servers.note(server, good=not trouble.servers_fault)
            if requests.closed:
                break
            if attempt < self.tries:
                await asyncio.sleep(_pause(attempt, trouble.pause_s))
        return failed(question, trouble.kind, trouble.message, permanent=False)

    def _chat(self, request: Request) -> list[dict[str, Any]]:
        urls = [
            data_url(picture, max_bytes=self.max_bytes, max_pixels=self.max_pixels)
            for picture in request.pictures
        ]
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        chat = messages(request.question, parts, system_role=self.system_role)
        for message in chat:
            # Some servers read a list of parts only where there is a picture.
            if all(part["type"] == "text" for part in message["content"]):
                message["content"] = message["content"][0]["text"]
        return chat

    async def _complete(
        self, client: openai.AsyncOpenAI, chat: list[dict[str, Any]]
    ) -> ChatCompletion:
        while True:
            named = self._limit_name
            try:
                # Chats are plain dicts, and the limit has one of two names.
                create: Any = client.chat.completions.create
                call: Coroutine[Any, Any, ChatCompletion] = create(
                    model=self.model, messages=chat, temperature=0, **{named: self.max_new_tokens}
                )
                # The client's limit is between bytes; a server that trickles would never end.
                async with asyncio.timeout(self.timeout_s):
                    return await call
            except TimeoutError as error:
                raise _NoReplyError(f"no reply within {self.timeout_s:g} s", "timeout") from error
            except openai.BadRequestError as error:
                # Newer models of OpenAI take the limit under another name only.
                if named == "max_completion_tokens" or "max_completion_tokens" not in str(error):
                    raise
                self._limit_name = "max_completion_tokens"


class _Shared:
    """An iterator that threads may take from, until it is closed."""

    def __init__(self, requests: Iterator[Request]) -> None:
        self.closed = False
        self._requests = requests
        self._lock = threading.Lock()

    def take(self) -> Request | None:
        with self._lock:
            return None if self.closed else next(self._requests, None)


class _NoReplyError(Exception):
    """There is an answer, but no reply in it; or none in time."""

    def __init__(self, message: str, kind: str = "bad response") -> None:
        super().__init__(message)
        self.kind = kind


def _reply(request: Request, answer: object, seconds: float) -> Reply:
    """Read a completion; the client does not check that the JSON has the right form.

    How large the pictures were when the model saw them, no server says.
    """
    choices: Any = getattr(answer, "choices", None)
    message = (
        getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    )
    content: Any = getattr(message, "content", None)
    if isinstance(content, list) and content:
        # Some servers answer in parts, as questions are asked.
        parts: list[Any] = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(parts) if parts and all(isinstance(s, str) for s in parts) else content
    if message is None or (content and not isinstance(content, str)):
        raise _NoReplyError(f"expected a chat completion, got {str(answer)[:200]!r}")
    # Without text: a refusal, or a reply that was all thought.
    text = content or getattr(message, "refusal", None) or ""
    usage = getattr(answer, "usage", None)
    return Reply(
        id=request.question.id,
        rotation=request.question.rotation,
        reply=text,
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        finish_reason=getattr(choices[0], "finish_reason", None),
        seconds=round(seconds, 6),
    )


def _trouble(error: Exception, url: str, model: str) -> _Trouble:
    """Sort a failure: hopeless for all rows, hopeless for this row, or worth another try.

    Raises:
        RunError: Hopeless for all rows.
    """
    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        message = f"{url}: {error.message}"
        if status in FATAL_STATUS:
            what = "the key in OPENAI_API_KEY" if status in (401, 403) else "--base-url and --model"
            raise RunError(
                f"{url} answers {status} to {model}: {' '.join(error.message.split())[:300]}. "
                f"Check {what}."
            ) from error
        retried = status in RETRIED_STATUS or status >= 500
        asked = _asked_pause(error.response.headers)
        return _Trouble(f"http {status}", message, asked, retried, servers_fault=status != 429)
    if isinstance(error, openai.APITimeoutError):
        return _Trouble("timeout", f"{url}: no connection or answer in time")
    if isinstance(error, openai.APIConnectionError):
        return _Trouble("connection", f"{url}: {error.__cause__ or error}")
    if isinstance(error, _NoReplyError):
        return _Trouble(error.kind, f"{url}: {error}")
    return _Trouble("bad response", f"{url}: {error}")


def _asked_pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, if it does."""
    try:
        if "retry-after-ms" in headers:
            return float(headers["retry-after-ms"]) / 1000
        asked = headers.get("retry-after")
        if asked is None:
            return None
        if asked.strip().replace(".", "", 1).isdecimal():
            return float(asked)
        return (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None


def _pause(attempt: int, asked_s: float | None) -> float:
    """Return how long to wait before the next try: as asked, or longer and longer.

    The jitter keeps workers from coming back all at once; it changes no reply.
    """
    if asked_s is not None and 0 <= asked_s <= LONGEST_ASKED_PAUSE_S:
        return asked_s * (1 + 0.1 * random.random())
    longest: float = min(FIRST_PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S)
    return longest * (0.75 + 0.25 * random.random())
