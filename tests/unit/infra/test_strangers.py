"""The tables of the kernel as `tests/integration/infra/strangers.py` reads them."""

from __future__ import annotations

import os
import socket

import pytest

from tests.integration.infra import strangers


@pytest.mark.parametrize(
    ("family", "address"),
    [
        (socket.AF_INET, "127.0.9.1"),
        (socket.AF_INET, "0.0.0.0"),
        (socket.AF_INET6, "::"),
        (socket.AF_INET6, "::1"),
        (socket.AF_INET6, "::ffff:127.0.9.1"),
    ],
)
def test_where_a_process_listens_is_read_as_it_asked(family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as server:
        try:
            server.bind((address, 0))
        except OSError as error:
            pytest.skip(f"this kernel has no {address}: {error.strerror}")
        server.listen()
        assert (address.removeprefix("::ffff:"), server.getsockname()[1]) in strangers._listening(os.getpid())
