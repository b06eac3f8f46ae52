"""UDP datagrams between hosts, which show whether packets get through: one side listens, the other sends."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

# Limits of one read: anyone may send datagrams, and the counts must fit into one answer.
LONGEST_WORD, MOST_DATAGRAMS = 32, 10_000


class DatagramListener:
    """Counts the datagrams that arrive at a free port of `address`, by their text (a word of letters and digits)."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind((address, 0))

    @property
    def port(self) -> int:
        """The UDP port on which it listens."""
        _, port = self._socket.getsockname()
        return int(port)

    def received(self) -> dict[str, int]:
        """How often each word has arrived since the last call."""
        words: Counter[str] = Counter()
        with suppress(BlockingIOError):
            for _ in range(MOST_DATAGRAMS):
                word = self._socket.recv(LONGEST_WORD)
                if word.isalnum():
                    words[word.decode()] += 1
        return dict(words)

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()


def send(address: str, word: str, to: Iterable[tuple[str, int]], times: int) -> int:
    """Send `word` `times` times from `address` to each of `to` (address, port); returns how many datagrams left.

    A word that a listener is to count has at most 32 letters and digits.
    """
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((address, 0))
        for target in to:
            for _ in range(times):
                with suppress(OSError):  # a packet filter of this host refuses it, or there is no route
                    sender.sendto(word.encode(), tuple(target))
                    sent += 1
    return sent
