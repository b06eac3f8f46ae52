"""What the runtime is made of, piece by piece: jobs, sources, files, blocks and the connections between slots."""

import json
import secrets
import selectors
import socket
import struct
import threading
import time
from contextlib import closing, nullcontext
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import BadInput, EnvironmentFailure
from experiments.workloads import NexmarkQuery, NexmarkSpec, ReachabilitySpec
from infra.journal import Journal, read_journal
from spark_jobs.dataflow.checkpoints import initial_line
from spark_jobs.dataflow.control import Go, NotStored, Ready, Restore
from spark_jobs.dataflow.effects import Grant, Publish, Sweep
from spark_jobs.dataflow.frames import Frame, Kind, encode
from spark_jobs.dataflow.operators import Delivery, Sink, Source
from spark_jobs.dataflow.queries import as_messages
from spark_jobs.dataflow.runtime import hosting, messages
from spark_jobs.dataflow.runtime.background import Background, Results
from spark_jobs.dataflow.runtime.janitor import Janitor
from spark_jobs.dataflow.runtime.job import InputKind, InputSpec, Job, OutputKind, OutputSpec
from spark_jobs.dataflow.runtime.mesh import Mesh
from spark_jobs.dataflow.runtime.messages import Broken, Failed, Hello, Kept, Peers, Status, Stop, UnknownMessage
from spark_jobs.dataflow.runtime.server import MOST_FAILURES, Server
from spark_jobs.dataflow.runtime.sinks import Files, Outlet, Superseded, published
from spark_jobs.dataflow.runtime.slot import tell_failure
from spark_jobs.dataflow.runtime.sources import Generated, columns, stream_of
from spark_jobs.dataflow.runtime.wire import BLOCK, LONGEST_BLOCK, NO_PARTITION, BlockReader, WireError, block, turn
from spark_jobs.dataflow.store import DirectoryStore, MemoryStore
from workloads.nexmark.stream import events
from workloads.schedule import Schedule

HERE = "127.0.0.1"
JOB = Job(
    run_id="unit",
    workload=NexmarkSpec(query=NexmarkQuery.Q1),
    protocol="coordinated",
    slots=2,
    parallelism=3,
    input=InputSpec(InputKind.GENERATED, 10_001, rate=5000.0),
    output=OutputSpec(OutputKind.FILES, Delivery.EXACTLY_ONCE, "output"),
    store="store",
)
TOKEN = secrets.token_hex(16)
NUMBERS = pa.schema([("number", pa.int64())])


def rows(*numbers):
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], schema=NUMBERS)


@pytest.mark.parametrize("job", [JOB, replace(JOB, workload=ReachabilitySpec(nodes=9), protocol="uncoordinated")])
def test_a_job_survives_its_way_to_the_slots(job):
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"slots": 0}, "slots"),
        ({"slots": 4}, "parallelism"),
        ({"checkpoint_interval_s": 0}, "checkpoint_interval_s"),
        ({"protocol": "hope"}, "protocol"),
        ({"protocol": "none"}, "delivery"),
        ({"workload": NexmarkSpec(query=NexmarkQuery.Q5)}, "workload.query"),
        ({"workload": ReachabilitySpec()}, "protocol of reachability"),
        ({"input": InputSpec(InputKind.GENERATED, None, rate=0)}, "input.rate"),
    ],
)
def test_a_job_that_cannot_run_is_refused(change, named):
    with pytest.raises(BadInput, match=named):
        replace(JOB, **change)


def feed_of(index, **input_changes):
    job = replace(JOB, input=replace(JOB.input, **input_changes))
    return Generated(job, next(p for p in job.layout().partitions if (p.operator, p.index) == ("bids", index)))


def test_the_partitions_of_a_source_make_every_bid_once():
    found = []
    for index in range(JOB.parallelism):
        feed, position, ended = feed_of(index), 0, False
        while not ended:
            assert feed.read(position) == feed.read(position), "the same again from the same position"
            batch, position, ended = feed.read(position)
            found += [] if batch is None else [batch]
    schema = found[0].schema
    bids = events(stream_of(JOB.workload, Schedule(0, JOB.input.rate)), 0, JOB.input.events).bids
    assert pa.Table.from_batches(found).sort_by("position") == pa.Table.from_batches([columns(bids, schema)])


def test_events_are_not_made_before_they_are_due():
    assert feed_of(0, start_ns=time.time_ns() + 10**12).read(0) is None


def test_a_file_is_published_once(tmp_path):
    for number, content in ((1, 10), (2, 20), (2, 99), (3, 30)):
        Files(tmp_path / "out.0").publish(number, [rows(content)])
    assert [table["number"].to_pylist() for table in published(tmp_path)] == [[10], [20], [30]]


def test_results_look_like_those_of_the_other_engine():
    bids = pa.RecordBatch.from_pydict(
        {
            "position": [7],
            "at_ns": [5_000_000],
            "auction": [1],
            "bidder": [2],
            "euros_milli": [12_040],
            "extra": ["x"],
        }
    )
    ((key, value),) = as_messages(JOB.workload, bids, partitions=3)
    assert key == "5|1:2"
    assert json.loads(value) == {
        "start_ms": 5,
        "end_ms": 5,
        "key": "1:2",
        "value": '{"auction":1,"bidder":2,"euros":12.040,"extra":"x"}',
    }


@given(st.lists(st.tuples(st.integers(-1, 9), st.binary(max_size=20))), st.integers(1, 30))
def test_blocks_arrive_in_any_pieces(given_blocks, size):
    data, reader, found = b"".join(block(*each) for each in given_blocks), BlockReader(), []
    for start in range(0, len(data), size):
        found += reader.feed(data[start : start + size])
    assert found == given_blocks


def test_a_block_that_nobody_would_send_is_refused():
    with pytest.raises(WireError, match="block of"):
        list(BlockReader().feed(BLOCK.pack(LONGEST_BLOCK + 1, 0)))


@pytest.mark.parametrize(
    "message",
    [
        Hello("token", (HERE, 1), 2, 3),
        Peers(4, ((HERE, 1), (HERE, 2)), 1),
        Broken(1, 2),
        Stop(),
        Failed("token", "why"),
        Status(1, {0: {"records_in": 5}}, {0: 7}, (3,), (Kept(0, 1, 0.5, 100, True),), 12),
    ],
)
def test_a_message_of_a_slot_survives_its_way(message):
    assert messages.decode(messages.encode(message)) == message


@pytest.mark.parametrize("data", [b"", b"[]", b'["Job", {}]', b'["Peers", {"epoch": 1}]'])
def test_what_is_no_message_is_refused(data):
    with pytest.raises(UnknownMessage):
        messages.decode(data)


def test_a_result_that_raises_holds_back_no_other():
    selector, seen = selectors.DefaultSelector(), []
    results = Results(selector)
    background = Background(results, "test")

    def fail(_):
        raise BadInput("result", 2, "any other")

    for number in range(5):
        background.submit(lambda number=number: number, fail if number == 2 else seen.append)
    background._pool.shutdown(wait=True)
    with pytest.raises(BadInput):
        turn(selector, 1.0)
    turn(selector, 1.0)
    assert seen == [0, 1, 3, 4]
    results.close()


class Overtaken(Outlet):
    """A sink that finds out, once it may, that another slot has it."""

    def __init__(self, may):
        self._may = may

    def publish(self, number, batches):
        assert self._may.wait(10)
        raise Superseded("out.0")

    def write(self, batches):
        raise NotImplementedError


class Alone:
    """The one slot of a job, in this thread but for the threads that are its own."""

    def __init__(self, folder):
        self.job = replace(
            JOB,
            slots=1,
            parallelism=1,
            protocol="uncoordinated",
            checkpoint_interval_s=0.1,
            store=str(folder / "store"),
            input=InputSpec(InputKind.GENERATED, None, rate=5000.0),
            output=OutputSpec(OutputKind.NOWHERE, Delivery.PLAIN),
        )
        self.layout, self.told, self.selector = self.job.layout(), [], selectors.DefaultSelector()
        results = Results(self.selector)
        self.storing, self.writing = (Background(results, name) for name in ("store", "outlet"))
        schemas = [each.schema for each in self.layout.channels]
        mesh = Mesh(self.selector, HERE, bytes(16), schemas, *(lambda _: None,) * 3)
        self.mesh, self._results = mesh, results
        threads = (self.storing, self.writing)
        self.hosting = hosting.Hosting(self.job, self.layout, mesh, *threads, lambda _, told: self.told.append(told))

    def begin(self, epoch):
        """An epoch from the beginning of the input."""
        self.hosting.begin(Peers(epoch, (self.mesh.address,), 0))
        for number, checkpoint in enumerate(initial_line(self.layout)):
            self.hosting.order(number, Restore(epoch, checkpoint, (), 0))
        deadline_s = time.monotonic() + 10
        while not all(Ready(number, epoch) in self.told for number in range(len(self.layout.partitions))):
            assert time.monotonic() < deadline_s
            turn(self.selector, 1.0)
        for number in range(len(self.layout.partitions)):
            self.hosting.order(number, Go(epoch))

    def the(self, kind):
        """The number of the one partition of this kind."""
        (number,) = (each.number for each in self.layout.partitions if isinstance(each.element, kind))
        return number

    def turn(self):
        now_s = time.monotonic()
        self.hosting.on_clock(now_s)
        self.hosting.work(now_s + 0.005)
        turn(self.selector, 0.005)

    def close(self):
        self.hosting.close()
        for each in (self.storing, self.writing, self.mesh, self._results):
            each.close()


@pytest.fixture
def alone(tmp_path):
    with closing(Alone(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("later", ["the same session", "no session", "another epoch"])
def test_an_outlet_that_fails_ends_the_session_that_it_is_of_and_no_later_one(alone, monkeypatch, later):
    may = threading.Event()
    monkeypatch.setattr(hosting, "outlet_of", lambda *_: Overtaken(may))
    alone.begin(1)
    alone.hosting._do(alone.hosting._hosted[alone.the(Sink)], Publish(1, ()))
    if later == "another epoch":
        alone.begin(2)
    elif later == "no session":
        alone.hosting.close()
    may.set()
    alone.writing._pool.submit(lambda: None).result(10)
    with pytest.raises(Superseded) if later == "the same session" else nullcontext():
        turn(alone.selector, 1.0)


def test_sources_read_nothing_while_a_store_refuses_and_go_on_once_it_takes(alone, tmp_path):
    (tmp_path / "store").write_text("no directory")
    alone.begin(1)
    source, deadline_s = alone.the(Source), time.monotonic() + 20

    def position():
        return alone.hosting.status().positions[source]

    def refusals():
        return sum(isinstance(each, NotStored) for each in alone.told)

    while not alone.hosting._store_lags and time.monotonic() < deadline_s:
        alone.turn()
    assert alone.hosting._store_lags
    held, before = position(), refusals()
    while refusals() < before + 10 and time.monotonic() < deadline_s:
        alone.turn()
    assert position() == held
    (tmp_path / "store").unlink()
    while position() == held and time.monotonic() < deadline_s:
        alone.turn()
    assert position() > held


class Pair:
    """Two slots' ends of a mesh in one thread; what arrives is kept."""

    def __init__(self, tokens=("ab" * 16, "ab" * 16)):
        self.selector = selectors.DefaultSelector()
        self.frames, self.grants, self.broken = ([], []), ([], []), ([], [])
        self.ends = [self._end(i, bytes.fromhex(token)) for i, token in enumerate(tokens)]

    def _end(self, i, token):
        heard = self.frames[i].append, self.grants[i].append, self.broken[i].append
        return Mesh(self.selector, HERE, token, [NUMBERS], *heard)

    def form(self, *epochs):
        addresses = tuple(end.address for end in self.ends)
        for i, epoch in enumerate(epochs):
            self.ends[i].form(Peers(epoch, addresses, i))

    def run(self, until):
        deadline_s = time.monotonic() + 10
        while not until():
            assert time.monotonic() < deadline_s
            for end in self.ends:
                end.flush()
            turn(self.selector, 0.01)

    def close(self):
        for end in self.ends:
            end.close()
        self.selector.close()


@pytest.fixture
def pair():
    made = Pair()
    yield made
    made.close()


def frame(epoch, sequence):
    return Frame(Kind.DATA, epoch, 0, sequence, 0, b"", rows(sequence))


def test_frames_go_over_in_order_and_credit_comes_back(pair):
    pair.form(1, 1)
    sent = [frame(1, sequence) for sequence in range(1, 500)]
    for each in sent:
        pair.ends[0].send(1, encode(each))
    pair.run(lambda: len(pair.frames[1]) == len(sent))
    assert pair.frames[1] == sent
    assert pair.ends[0].sent_bytes == sum(len(encode(each)) for each in sent)
    pair.ends[1].grant(0, Grant(0, 1, 7))
    pair.run(lambda: pair.grants[0])
    assert pair.grants[0] == [Grant(0, 1, 7)]


@pytest.mark.parametrize("epochs", [(1, 2), (2, 1)])
def test_who_lives_in_another_epoch_is_shut_out(pair, epochs):
    pair.form(*epochs)
    pair.ends[0].send(1, encode(frame(epochs[0], 1)))
    pair.run(lambda: pair.broken[0])
    assert (pair.broken[0], pair.frames[1], pair.broken[1]) == ([1], [], [])


def test_a_new_epoch_ends_old_connections_and_only_the_other_end_hears_of_it(pair):
    pair.form(1, 1)
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.frames[1])
    pair.ends[0].form(Peers(2, tuple(end.address for end in pair.ends), 0))
    pair.run(lambda: pair.broken[1])
    assert (pair.broken[0], pair.broken[1]) == ([], [0])


def test_a_stranger_is_not_listened_to():
    pair = Pair(("ab" * 16, secrets.token_hex(16)))
    pair.form(1, 1)
    pair.ends[0].send(1, encode(frame(1, 1)))
    pair.run(lambda: pair.broken[0])
    assert pair.frames[1] == []
    with socket.create_connection(pair.ends[0].address) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: somebody\r\n\r\n")
        pair.run(lambda: not pair.ends[0]._strangers)
    pair.close()


@pytest.mark.parametrize("foreign", [(), ("a.txt", "out.0/notes-last", "out.0/backup-1")])
def test_a_recovery_sweeps_away_what_earlier_epochs_left_whole_or_not(tmp_path, foreign):
    store = DirectoryStore(tmp_path / "store")
    for key in foreign:
        store.put(key, [b"not of this runtime"])
    for key in ("out.0/state-1-1", "out.0/state-2-1", "out.0/state-2-2"):
        store.put(key, [b"content"])
    for name in (".7.state-3-1", ".8.state-3-2"):
        (tmp_path / "store" / "out.0" / name).write_bytes(b"cont")
    janitor = Janitor(store, Journal(tmp_path / "journal.jsonl"))
    janitor.sweep(Sweep(2, frozenset({"out.0/state-1-1"})))
    janitor.close()
    assert store.keys() == sorted(["out.0/.8.state-3-2", "out.0/state-1-1", "out.0/state-2-2", *foreign])


class Refusing(MemoryStore):
    """Refuses the first listing and the first delete."""

    def __init__(self):
        super().__init__()
        self._refusals = ["keys", "delete"]

    def keys(self):
        self._refuse("keys")
        return super().keys()

    def delete(self, key):
        self._refuse("delete")
        super().delete(key)

    def _refuse(self, what):
        if what in self._refusals:
            self._refusals.remove(what)
            raise EnvironmentFailure(f"{what} refused", "wait")


def test_what_a_store_does_not_list_or_delete_is_tried_again_and_told(tmp_path):
    store, journal = Refusing(), tmp_path / "journal.jsonl"
    for key in ("out.0/state-1-1", "out.0/state-2-1", "out.0/state-3-1", "out.0/state-4-2"):
        store.put(key, [b"content"])
    janitor = Janitor(store, Journal(journal))
    janitor.sweep(Sweep(2, frozenset({"out.0/state-3-1"})))
    janitor.delete(("out.0/state-1-1",))
    janitor.delete(())
    janitor.close()
    assert store.keys() == ["out.0/state-3-1", "out.0/state-4-2"]
    assert [each["error"] for each in read_journal(journal)] == ["keys refused; wait", "delete refused; wait"]


def server_in(folder):
    return Server(replace(JOB, store=str(folder / "store")), TOKEN, HERE, Journal(folder / "journal.jsonl"))


@pytest.fixture
def server(tmp_path):
    with closing(server_in(tmp_path)) as made:
        yield made


def serve_until(server, condition):
    deadline_s = time.monotonic() + 10
    server.serve(lambda: condition() or time.monotonic() > deadline_s)
    assert condition()


def events_in(folder, event):
    return [entry for entry in read_journal(folder / "journal.jsonl") if entry["event"] == event]


def say(slot, *words):
    slot.sendall(b"".join(block(NO_PARTITION, messages.encode(each)) for each in words))


def test_slots_that_do_nothing_but_fail_end_the_run_with_their_last_words(server, tmp_path):
    """As of a state that can't be serialised, which another try does not change."""
    words = [Failed(TOKEN, "BadInput: state of count.0: not usable")] * MOST_FAILURES
    with socket.create_connection(server.address) as slot:
        say(slot, Hello(TOKEN, (HERE, 1), 0, 0), *words)
        with pytest.raises(EnvironmentFailure, match=r"fail again and again: BadInput: state of count\.0"):
            serve_until(server, lambda: False)
    assert len(events_in(tmp_path, "slot-failed")) == MOST_FAILURES


def test_slots_that_cannot_even_begin_end_the_run_too(server, tmp_path):
    for _ in range(MOST_FAILURES):
        tell_failure(server.address, TOKEN, ModuleNotFoundError("No module named 'boto3'"))
    with pytest.raises(EnvironmentFailure, match="fail again and again: ModuleNotFoundError: No module named 'boto3'"):
        serve_until(server, lambda: False)


@pytest.mark.parametrize("words", [Failed("another run's", "why"), Status(1, finished=(0, 1, 2)), Broken(1, 0)])
def test_who_is_not_of_the_run_is_not_heard(server, tmp_path, words):
    with socket.create_connection(server.address) as stranger:
        say(stranger, *[words] * MOST_FAILURES)
        stranger.settimeout(0.1)

        def is_cut_off():
            try:
                return stranger.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionResetError:
                return True

        serve_until(server, is_cut_off)
    assert not events_in(tmp_path, "slot-failed")


def test_all_slots_hear_of_the_end_though_one_has_just_died(tmp_path):
    server = server_in(tmp_path)
    dying, living = (socket.create_connection(server.address) for _ in range(2))
    for slot in (dying, living):
        say(slot, Hello(TOKEN, (HERE, 1), 0, 0))
    serve_until(server, lambda: len(events_in(tmp_path, "worker-joined")) == 2)
    dying.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed with a reset
    dying.close()
    server.close()
    with living:
        heard = b"".join(iter(lambda: living.recv(1 << 16), b""))
    assert messages.encode(Stop()) in heard


def test_a_connection_that_breaks_while_an_earlier_break_is_remembered_is_known(server, tmp_path):
    slots = [socket.create_connection(server.address) for _ in range(2)]
    for slot in slots:
        say(slot, Hello(TOKEN, (HERE, 1), 0, 0))
    serve_until(server, lambda: events_in(tmp_path, "recovering"))
    first = events_in(tmp_path, "recovering")[-1]["epoch"]
    say(slots[0], Broken(first, 1))
    slots.pop().close()
    slots.append(socket.create_connection(server.address))
    say(slots[1], Hello(TOKEN, (HERE, 1), 0, 1))
    serve_until(server, lambda: events_in(tmp_path, "recovering")[-1]["epoch"] > first)
    say(slots[0], Broken(events_in(tmp_path, "recovering")[-1]["epoch"], 1))
    serve_until(server, lambda: any("broke" in lost["why"] for lost in events_in(tmp_path, "worker-lost")))
    for slot in slots:
        slot.close()
