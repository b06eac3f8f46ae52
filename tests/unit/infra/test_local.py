"""Which loopback subnet a cluster gets."""

import socket

from infra import local
from tests.unit.marked_processes import start, wait_for


def test_the_mark_of_somebody_else_does_not_keep_a_cluster_from_its_subnet():
    """Marks are free text in an environment: one may begin as ours do, without a number."""
    free = local._free_subnet()
    others = [start(mark) for mark in ("s-elsewhere/host", f"s{free}-run/gateway")]
    try:
        wait_for(lambda: len(local.marks(local.TOKEN_LETTER) & {"s-elsewhere/host", f"s{free}-run/gateway"}) == 2)
        assert local._free_subnet() > free
    finally:
        for process in others:
            process.kill()
            process.wait()


def test_a_cluster_of_another_user_whose_broker_and_master_are_down_keeps_its_subnet():
    """Its processes do not show their marks, and no port of its gateway is taken; its workers listen."""
    free = local._free_subnet()
    with socket.create_server((f"127.0.{free}.2", 0)), socket.create_server((f"127.0.{free + 1}.3", 0)):
        assert local._free_subnet() > free + 1
