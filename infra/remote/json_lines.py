"""Sessions in which requests and answers are JSON lines, over any transport."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from typing import Any, NoReturn

from experiments.waiting import Deadline
from infra.remote.session import Disconnected, Unsent

LONGEST_LINE = 2**20  # bytes: answers have some hundred
PIECE_BYTES = 65536  # that a carrier reads at once, at most
MOST_OTHER_LINES = 1000  # before an answer


class JsonLines(ABC):
    """A session (`infra.remote.session`) over what a subclass carries; it ends when closed, or with its program.

    What the carrier raises when the connection is gone is one of `lost_by`.
    """

    lost_by: tuple[type[BaseException], ...] = (OSError, EOFError)

    def __init__(self) -> None:
        self._asking, self._sending = threading.Lock(), threading.Lock()
        self._received = b""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether the program and the connection to it are there, as far as this end can tell without asking."""

    def tell(self, **request: Any) -> None:
        """Send a request that has no answer; waits for none that another thread has asked for."""
        self._send(request)

    def ask(self, within_s: float, **request: Any) -> Any:
        """As `Session.ask`: another thread may have lost the connection, and closed it, while this one waited.

        Whatever interrupts it (Ctrl-C, say) ends the session: the answer may still come, and would be read as the
        answer to the next request.
        """
        with self._asking:
            if not self.alive:
                raise Unsent("it was gone already")
            deadline = Deadline(within_s)
            try:
                self.set_limit(within_s)
                self._send(request)
                return self._answer(deadline)
            except BaseException:
                self.close()
                raise

    def _send(self, request: dict[str, Any]) -> None:
        try:
            with self._sending:
                self.send(json.dumps(request).encode() + b"\n")
        except self.lost_by as error:
            self._lost(error)

    def _answer(self, deadline: Deadline) -> Any:
        """The next line that is JSON: a login shell may print others before the program begins.

        What runs on a host may have the program say anything: what is no answer ends the session, and nothing else.
        """
        try:
            for _ in range(MOST_OTHER_LINES):
                if (line := self._line(deadline)).startswith("{"):
                    return json.loads(line)
        except self.lost_by as error:
            self._lost(error)
        except (ValueError, RecursionError):
            self._lost(EOFError("what it says is no answer"))
        self._lost(EOFError("it says much and gives no answer"))

    def _line(self, deadline: Deadline) -> str:
        """The next line, however it comes in pieces; raises one of `lost_by`, or `ValueError` for what is no text."""
        while b"\n" not in self._received:
            if len(self._received) > LONGEST_LINE:
                raise EOFError("it says much and gives no answer")
            if (left_s := deadline.left_s) <= 0:
                raise TimeoutError("no answer in time")
            self.set_limit(left_s)
            if not (piece := self.receive()):
                raise EOFError((self.error_output().strip().splitlines() or ["it ended"])[-1])
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        return line.decode()

    def _lost(self, error: BaseException) -> NoReturn:
        self.close()
        raise Disconnected(reason_of(error)) from None

    @abstractmethod
    def set_limit(self, limit_s: float) -> None:
        """How long sending and reading may take from now on [s]."""

    @abstractmethod
    def send(self, line: bytes) -> None:
        """Send one line, its end included; raises one of `lost_by`."""

    @abstractmethod
    def receive(self) -> bytes:
        """The next piece of what the program says, as soon as there is one; empty when there will be none."""

    @abstractmethod
    def error_output(self) -> str:
        """What the program wrote to standard error."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, which ends the program."""


def reason_of(error: BaseException) -> str:
    """Why a connection was lost, in a few words."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
