"""A session with a program in a container, over the stream of a `docker exec`, which needs no network."""

from __future__ import annotations

import select
import socket
from collections.abc import Sequence

from docker.errors import DockerException
from docker.models.containers import Container
from requests.exceptions import RequestException

from experiments.waiting import Deadline
from infra.docker.containers import Status
from infra.remote.json_lines import PIECE_BYTES, JsonLines, reason_of
from infra.remote.session import Disconnected

HEADER_BYTES = 8  # of a frame: which stream it is of (1), zeros (3), its length (4, big-endian)
STDERR = 2
ERROR_OUTPUT_BYTES = 10_000
SILENCE_S = 1.0  # after so long without an answer, the daemon is asked whether the container still runs


class ExecSession(JsonLines):
    """A program in a container; one in a container that is paused, or ends, is lost."""

    def __init__(self, container: Container, command: Sequence[str]) -> None:
        """Run a command in a container; raises `Disconnected` when that does not run."""
        super().__init__()
        self._container, self._limit_s = container, SILENCE_S
        self._buffer, self._errors = b"", b""
        api = container.client.api
        try:
            exec_id = api.exec_create(container.id, list(command), stdin=True)["Id"]
            self._stream = api.exec_start(exec_id, socket=True)
        except (DockerException, RequestException) as error:
            raise Disconnected(reason_of(error)) from None
        self._socket: socket.socket = self._stream._sock

    @property
    def alive(self) -> bool:
        """Whether neither end has closed the stream.

        Another thread may be reading the stream meanwhile, or close it. So this does not look at what has come: by the
        time of the look it may be taken, and the look would wait for more.
        """
        closed = select.poll()
        try:
            closed.register(self._socket, select.POLLRDHUP)
        except ValueError:  # it is closed here
            return False
        return not closed.poll(0)

    def set_limit(self, limit_s: float) -> None:
        self._limit_s = limit_s

    def send(self, line: bytes) -> None:
        self._socket.settimeout(self._limit_s)
        self._socket.sendall(line)

    def receive(self) -> bytes:
        deadline = Deadline(self._limit_s)
        while True:
            kind, content = self._frame(deadline)
            if kind == STDERR:
                self._errors = (self._errors + content)[-ERROR_OUTPUT_BYTES:]
            elif content or not kind:
                return content

    def _frame(self, deadline: Deadline) -> tuple[int, bytes]:
        """The next frame: which stream it is of, and its content; (0, b"") when the program has ended."""
        header = self._exactly(HEADER_BYTES, deadline)
        if not header:
            return 0, b""
        return header[0], self._exactly(int.from_bytes(header[4:], "big"), deadline)

    def _exactly(self, count: int, deadline: Deadline) -> bytes:
        while len(self._buffer) < count:
            received = self._receive(deadline)
            if not received:
                return b""
            self._buffer += received
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def _receive(self, deadline: Deadline) -> bytes:
        while (left_s := deadline.left_s) > 0:
            self._socket.settimeout(min(left_s, SILENCE_S))
            try:
                return self._socket.recv(PIECE_BYTES)
            except TimeoutError:
                self._check_running()
        raise TimeoutError("no answer in time")

    def _check_running(self) -> None:
        try:
            self._container.reload()
        except (DockerException, RequestException) as error:
            raise EOFError(str(error)) from None
        if self._container.status != Status.RUNNING:
            raise EOFError(f"it is {self._container.status}")

    def error_output(self) -> str:
        return self._errors.decode(errors="replace")

    def close(self) -> None:
        self._stream.close()
        self._socket.close()
