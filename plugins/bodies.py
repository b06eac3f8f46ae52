"""Limits request bodies: a route reads one only after the user is admitted, and only up to the size of a small form."""

from __future__ import annotations

from fastapi import HTTPException, Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 16_384


class SmallBodies:
    """Middleware that refuses a body above `MOST_BYTES` when a route begins to read it, or while it does.

    Nothing is read before a route asks for it. A connection on which a body was announced is closed with the answer, so
    that the server does not read on to find the next request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        declared = headers.get("Content-Length", "0")
        has_body = "Transfer-Encoding" in headers or declared != "0"
        announced, taken, answered = _whole(declared), 0, False

        async def limited() -> Message:
            nonlocal taken
            message = {} if announced > MOST_BYTES else await receive()
            taken += len(message.get("body", b""))
            if max(announced, taken) <= MOST_BYTES:
                return message
            if answered:
                return {"type": "http.disconnect"}
            raise HTTPException(413, f"The body of a request has {MOST_BYTES:,} bytes at the most.")

        async def closing(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                if has_body:
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await self.app(scope, limited, closing)


def _whole(text: str) -> int:
    """A length that a server has let through; of a made-up one nothing is known."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else MOST_BYTES + 1


async def form_field(request: Request, name: str) -> str:
    """A text of the form that was sent; empty if it is not there."""
    async with request.form(max_files=0, max_fields=10) as form:
        value = form.get(name, "")
    return value if isinstance(value, str) else ""
