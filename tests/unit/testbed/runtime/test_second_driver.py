"""A second server on the store of a first one: what it knows, and what becomes of the first."""

import secrets
import socket
import threading
from dataclasses import replace

import pytest

from experiments.errors import EnvironmentFailure
from journal.events.testbed import TESTBED, Finished, Recovering, StoreSlow, WorkerJoined
from journal.reader import events
from journal.writer import Journal
from testbed.core.seal import KEY_BYTES
from testbed.runtime.network import messages
from testbed.runtime.network.messages import SLOT, Hello, SlotStatus
from testbed.runtime.network.secret import TOKEN_BYTES, RunSecret
from testbed.runtime.network.wire import NO_PARTITION, block
from testbed.runtime.server import record_keeper, store_watch
from testbed.runtime.server.server import Server
from testbed.stores.record_chain import TakenOver
from testbed.stores.store import DirectoryStore
from tests.unit.marked_processes import wait_for
from tests.unit.testbed.runtime.serving import serve_until
from tests.unit.testbed.small_job import HERE, JOB

SECRET = RunSecret(secrets.token_bytes(TOKEN_BYTES), secrets.token_bytes(KEY_BYTES))


@pytest.fixture
def started(tmp_path):
    """Starts servers, one after the other."""
    servers = []

    def start(store_key=SECRET.store_key, **changes):
        job = replace(JOB, slots=1, store=str(tmp_path / "store"), **changes)
        servers.append(Server(job, SECRET.token, HERE, Journal(tmp_path / "journal.jsonl"), store_key))
        return servers[-1]

    yield start
    for each in servers:
        each.close()


def told(folder, kind):
    return [event for event in events(folder / "journal.jsonl", TESTBED) if isinstance(event, kind)]


def come_to(server):
    """A slot comes."""
    slot = socket.create_connection(server.address)
    slot.sendall(SLOT.of(SECRET.token) + block(NO_PARTITION, messages.encode(Hello((HERE, 1), 0, 0))))
    return slot


def join(server, folder):
    """A slot comes, and everybody is told to go back."""
    before = len(told(folder, Recovering))
    slot = come_to(server)
    serve_until(server, lambda: len(told(folder, Recovering)) > before)
    return slot


def test_a_second_driver_uses_no_epoch_and_no_name_of_the_first(started, tmp_path):
    with join(started(), tmp_path), join(started(), tmp_path):
        assert [each.epoch for each in told(tmp_path, Recovering)] == [1, 2]
        names = [each.worker for each in told(tmp_path, WorkerJoined)]
        assert names == ["slot-1", "slot-3-1"], "by the number of each driver's first record"


def test_drivers_that_die_before_their_first_epoch_have_different_numbers(started):
    assert [started()._records.driver for _ in range(3)] == [1, 2, 3]


def test_a_driver_that_another_has_followed_ends_before_it_begins_anything(started, tmp_path):
    first = started()
    with join(first, tmp_path):
        started()
    with pytest.raises(TakenOver):
        join(first, tmp_path)
    assert [each.epoch for each in told(tmp_path, Recovering)] == [1]


def test_a_driver_that_another_has_followed_does_not_tell_that_the_output_is_complete(started, tmp_path, monkeypatch):
    first = started()
    with join(first, tmp_path):
        second = started()
        for server in (first, second):
            monkeypatch.setattr(server, "_finished", lambda: True)
        with pytest.raises(TakenOver):
            first.serve(lambda: False)
        assert told(tmp_path, Finished) == []
        assert second.serve(lambda: False)
        assert len(told(tmp_path, Finished)) == 1


def test_where_sources_end_outlives_the_driver(started):
    first = started()
    first._draining.ends = {0: 500, 1: 400, 2: 450}
    serve_until(first, lambda: first._records.ends == first._draining.ends)
    assert started()._draining.ends == {0: 500, 1: 400, 2: 450}


def test_nobody_hears_where_sources_end_before_that_is_written(started):
    class Listener:
        def say(self, message):
            heard.append(message)

    heard, draining, ends = [], started()._draining, {0: 500, 1: 400, 2: 450}
    draining._guests, draining.ends = {"slot-1": Listener()}, ends
    draining.look({})
    draining.on_epoch()
    assert heard == []
    draining.look(ends)
    draining.on_epoch()
    assert heard == [messages.Drain(ends)] * 2


def test_what_partitions_cost_outlives_the_driver(started, tmp_path):
    first = started()
    first._costs.cores.update({0: 0.5, 2: 0.25})
    with join(first, tmp_path):
        assert started()._costs.cores == {0: 0.5, 2: 0.25}


def test_how_far_partitions_were_outlives_the_driver_where_they_recover_on_their_own(started, tmp_path):
    parts = {"protocol": "batch-aligned", "recovery": "passive"}
    first = started(**parts)
    with join(first, tmp_path):
        first._milestones.note(SlotStatus(1, progress={0: {-1: 70}, 2: {0: 5}}))
        first._milestones.note(SlotStatus(1, progress={0: {-1: 40}}))  # again, since its last recovery
        first._tell_progress()
    with join(started(**parts), tmp_path):
        found = told(tmp_path, Recovering)[-1].reached
        assert {name: by for name, by in found.items() if by} == {"bids.0": {"-1": 70}, "bids.2": {"0": 5}}


def test_how_far_partitions_were_is_not_known_where_all_go_back(started, tmp_path):
    """The first driver does not report it there. Each would seem to be as far as soon as it goes on."""
    with join(started(), tmp_path):
        second = started()
        for _ in range(2):
            join(second, tmp_path).close()
    *reached, later = (each.reached for each in told(tmp_path, Recovering))
    assert reached == [{}, {}]
    assert later.keys() == {each.name for each in JOB.layout().partitions}, "what it sees itself it knows"


def test_a_second_driver_without_the_key_is_refused(started):
    started()
    with pytest.raises(EnvironmentFailure, match="the record of the previous driver is lost"):
        started(store_key=bytes(KEY_BYTES))


def test_a_second_driver_of_another_dataflow_is_refused(started, tmp_path):
    with join(started(), tmp_path), pytest.raises(EnvironmentFailure, match="of another dataflow"):
        started(parallelism=2)


def test_nothing_begins_while_the_store_refuses_records(started, tmp_path, monkeypatch):
    monkeypatch.setattr(record_keeper, "AGAIN_S", 0.01)
    server, tries = started(), []

    def refuse(content, real=server._records._chain.add):
        tries.append(content)
        if len(tries) < 4:
            assert told(tmp_path, Recovering) == []
            raise EnvironmentFailure("no room", "make some")
        real(content)

    monkeypatch.setattr(server._records._chain, "add", refuse)
    with join(server, tmp_path):
        assert len(tries) == 4


@pytest.fixture
def refusing(monkeypatch):
    """What the store will refuse: each of these methods once."""
    left = []

    def reluctant(name, real):
        def act(store, *given):
            if name in left:
                left.remove(name)
                raise EnvironmentFailure("no answer", "wait")
            return real(store, *given)

        return act

    for name in ("create", "keys", "get"):
        monkeypatch.setattr(DirectoryStore, name, reluctant(name, getattr(DirectoryStore, name)))
    return left


def test_a_second_driver_waits_for_a_store_that_refuses(started, tmp_path, monkeypatch, refusing):
    """The first one would have done so. An outage that takes the driver may take the store for a while, too."""
    monkeypatch.setattr(record_keeper, "AGAIN_S", 0.01)
    with join(started(), tmp_path):
        refusing += ["keys", "get", "create", "keys", "create"]
        second = started()
    assert (refusing, second._records.found.epoch) == ([], 1)


def test_a_second_driver_does_not_wait_for_ever(started, tmp_path, monkeypatch, refusing):
    monkeypatch.setattr(record_keeper, "PATIENCE_S", 0.0)
    with join(started(), tmp_path):
        refusing += ["create"]
        with pytest.raises(EnvironmentFailure, match="no answer"):
            started()


def test_a_store_that_refuses_records_for_long_ends_the_run(started, tmp_path, monkeypatch):
    monkeypatch.setattr(record_keeper, "AGAIN_S", 0.0)
    monkeypatch.setattr(record_keeper, "PATIENCE_S", 0.0)
    server = started()

    def refuse(content):
        raise EnvironmentFailure("no room", "make some")

    monkeypatch.setattr(server._records._chain, "add", refuse)
    with pytest.raises(EnvironmentFailure, match="no room"):
        join(server, tmp_path)


def test_a_store_that_hangs_amid_a_record_is_told_of(started, tmp_path, monkeypatch):
    """It refuses nothing, and without the record nothing begins."""
    monkeypatch.setattr(store_watch, "SLOW_S", 0.05)
    server, may = started(), threading.Event()

    def hang(content, real=server._records._chain.add):
        may.wait(60)
        real(content)

    monkeypatch.setattr(server._records._chain, "add", hang)
    with come_to(server):
        serve_until(server, lambda: told(tmp_path, StoreSlow))
        assert told(tmp_path, Recovering) == []
        may.set()
        serve_until(server, lambda: told(tmp_path, Recovering))
    assert {each.worker for each in told(tmp_path, StoreSlow)} == {store_watch.DRIVER}


def test_a_store_that_has_answered_is_waited_for_no_more(started):
    """The driver deals with the answer when it comes to it, which may be late: that is not the store's fault."""
    server = started()
    server._draining.ends, records = {0: 500, 1: 400, 2: 450}, server._records
    records.effects()
    wait_for(lambda: records._writing.done())
    assert records.waited_s == 0.0


def test_a_store_that_hangs_at_the_end_of_a_run_is_told_of(started, tmp_path, monkeypatch):
    """The output is complete by then, but that no other driver has come is not confirmed."""
    monkeypatch.setattr(store_watch, "SLOW_S", 0.05)
    monkeypatch.setattr(record_keeper, "AGAIN_S", 0.02)
    server = started()
    monkeypatch.setattr(server, "_finished", lambda: True)

    def hang(real=server._records._chain.confirm):
        wait_for(lambda: told(tmp_path, StoreSlow))
        assert told(tmp_path, Finished) == []
        real()

    monkeypatch.setattr(server._records._chain, "confirm", hang)
    assert server.serve(lambda: False)
    assert [each.worker for each in told(tmp_path, StoreSlow)] == [store_watch.DRIVER]
    assert len(told(tmp_path, Finished)) == 1


def test_the_key_is_read_from_its_file(tmp_path):
    file = tmp_path / "store.key"
    file.write_text("ab" * KEY_BYTES)
    one, other = (RunSecret.with_key_in(str(file)) for _ in range(2))
    assert one.store_key == other.store_key == bytes([0xAB]) * KEY_BYTES
    assert one.token != other.token
    assert RunSecret.with_key_in(None).store_key != RunSecret.with_key_in(None).store_key


@pytest.mark.parametrize("text", [None, "", "ab", "no digits"])
def test_a_file_without_a_key_is_refused(tmp_path, text):
    file = tmp_path / "store.key"
    if text is not None:
        file.write_text(text)
    with pytest.raises(EnvironmentFailure, match="the key of the checkpoints"):
        RunSecret.with_key_in(str(file))
