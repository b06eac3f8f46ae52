"""Proves that a member of the run wrote some stored bytes, under the key at which they are found.

Poly1305 (RFC 8439, section 2.5) with a key for each object: the BLAKE2b hash of the store's key, a number drawn for the
object, and the object's own key. So a process without the store's key can neither change an object nor put it in the
place of another one. A damaged object is noticed, too.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import blake2b
from typing import TypeAlias

import pyarrow as pa
from cryptography.hazmat.primitives.poly1305 import Poly1305

Piece: TypeAlias = bytes | memoryview | pa.Buffer
KEY_BYTES, DRAWN_BYTES, TAG_BYTES = 32, 32, 16
SEAL_BYTES = DRAWN_BYTES + TAG_BYTES
PURPOSE = b"stored object"
SLICE = 1 << 20  # no other thread goes on while one is summed up


class Seal:
    """The seal of one object, whose pieces are added one after the other."""

    def __init__(self, store_key: bytes, key: str, drawn: bytes | None = None) -> None:
        """`drawn`: of an object that is there; a new one draws its own."""
        self._drawn = secrets.token_bytes(DRAWN_BYTES) if drawn is None else drawn
        name = self._drawn + key.encode()
        self._sum = Poly1305(blake2b(name, digest_size=32, key=store_key, person=PURPOSE).digest())

    def add(self, piece: Piece) -> None:
        """Take the next piece of the object into the sum."""
        view = memoryview(piece).cast("B") if len(piece) else b""
        for start in range(0, len(view), SLICE):
            self._sum.update(view[start : start + SLICE])

    def end(self) -> bytes:
        """The seal, `SEAL_BYTES` long. Nothing can be added after that."""
        return self._drawn + self._sum.finalize()


def is_sealed(store_key: bytes, key: str, content: memoryview, seal: bytes) -> bool:
    """Whether this is the seal of this content at this key. The time does not depend on the seal."""
    own = Seal(store_key, key, seal[:DRAWN_BYTES])
    own.add(content)
    return hmac.compare_digest(own.end(), seal)
