"""Whether datagrams come through from one host to another: what a host hears, and what it calls out to others."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

LONGEST_WORD = 100


class Ear:
    """Hears what is sent to a port of its own at an address."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind((address, 0))

    @property
    def port(self) -> int:
        return self._socket.getsockname()[1]

    def heard(self) -> dict[str, int]:
        """How often each word has come so far, since this was asked last."""
        words: Counter[str] = Counter()
        with suppress(BlockingIOError):
            while True:
                words[self._socket.recv(LONGEST_WORD).decode(errors="replace")] += 1
        return dict(words)

    def close(self) -> None:
        self._socket.close()


def call(address: str, word: str, to: Iterable[tuple[str, int]], times: int) -> int:
    """Send a word that often from an address to each of the others; returns how many were not refused on this side."""
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
        mouth.bind((address, 0))
        for target in to:
            for _ in range(times):
                with suppress(OSError):  # a rule of this host's own refuses it, or no way leads there
                    mouth.sendto(word.encode(), tuple(target))
                    sent += 1
    return sent
