"""The handle of a cluster: a value that passes between tasks as JSON and through a file."""

import json
import os
import stat
from dataclasses import asdict

import pytest

from experiments.errors import EnvironmentFailure
from infra import leftovers
from infra.cluster import HANDLE_FILE, Handle, Host, Role

TOKEN = "s9-0123456789c0ffee"
HOSTS = {
    "gateway": Host("gateway", "127.0.9.1", Role.GATEWAY, 1, 640),
    "worker-1": Host("worker-1", "127.0.9.2", Role.WORKER, 2, 700),
    "worker-2": Host("worker-2", "127.0.9.3", Role.WORKER, 2, 700),
}


def handle(root) -> Handle:
    return Handle("run-1", "local", TOKEN, str(root), HOSTS, "127.0.9.1:9092", "spark://127.0.9.1:7077")


def test_a_handle_survives_json(tmp_path):
    made = handle(tmp_path)
    again = Handle.from_json(json.loads(json.dumps(made.to_json())))
    assert again == made
    assert again.gateway is again.hosts["gateway"]
    assert again.gateway.role is Role.GATEWAY


def test_a_handle_is_saved_whole_and_found_again_by_its_root(tmp_path):
    made = handle(tmp_path)
    made.save()
    made.save()
    assert Handle.load(tmp_path) == made
    assert [path.name for path in tmp_path.iterdir()] == [HANDLE_FILE]
    assert stat.S_IMODE((tmp_path / HANDLE_FILE).stat().st_mode) == 0o600, "the token is in it"


def test_workers_gateway_and_directories(tmp_path):
    made = handle(tmp_path)
    assert [worker.name for worker in made.workers] == ["worker-1", "worker-2"]
    assert made.gateway.name == "gateway"
    assert made.directory("worker-2") == tmp_path / "hosts" / "worker-2"


def changed(where, value):
    """The JSON of a handle with one field of it, or of its first worker, changed."""
    document = handle("/root").to_json()
    *above, name = where.split(".")
    target = document
    for key in above:
        target = target[key]
    target[name] = value
    return document


@pytest.mark.parametrize(
    ("where", "value"),
    [
        *(("token", odd) for odd in ("s9", "s9-0123456789c0ffe", "", "s9-0123456789c0ffee/worker-1", 9, None, "../s9")),
        *(("root", odd) for odd in ("relative", "", 1)),
        *(("run_id", odd) for odd in ("../run", "", 1)),
        *(("driver", odd) for odd in ("cloud", None, "netns", "ssh", "docker")),
        *(("hosts", odd) for odd in ([], None, {"worker-1": 1}, {})),
        ("hosts", {"worker-1": asdict(HOSTS["worker-1"])}),
        ("hosts.worker-1.role", "gateway"),
        *(("hosts.worker-1.name", odd) for odd in ("worker-2", 1)),
        *(("hosts.worker-1.address", odd) for odd in ("localhost", "127.0.9.2; reboot", 1)),
        *(("hosts.worker-1.cores", odd) for odd in ("2", True, 1.5)),
        *(("hosts.worker-1.role", odd) for odd in ("boss", [])),
        *(("broker", odd) for odd in (None, ["x"])),
        ("more", 1),
    ],
)
def test_a_handle_of_which_a_field_is_not_what_it_should_be_is_refused(where, value, tmp_path):
    with pytest.raises(ValueError, match="not"):
        Handle.from_json(changed(where, value))
    (tmp_path / HANDLE_FILE).write_text(json.dumps(changed(where, value)))
    with pytest.raises(EnvironmentFailure, match=f"{HANDLE_FILE} is damaged") as failure:
        Handle.load(tmp_path)
    assert "c0ffe" not in str(failure.value), "the token is not told"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"token": "s9-0123456789c0ffee"}', "[" * 100_000, "\udc80"])
def test_a_torn_handle_is_one_line(text, tmp_path):
    (tmp_path / HANDLE_FILE).write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(EnvironmentFailure, match="is damaged") as failure:
        Handle.load(tmp_path)
    assert "\n" not in str(failure.value)


def test_the_handle_of_another_root_is_refused(tmp_path):
    """Who copies a handle to another run's root must not have the cluster at the first root ended."""
    (tmp_path / HANDLE_FILE).write_text(json.dumps(handle(tmp_path / "elsewhere").to_json()))
    with pytest.raises(EnvironmentFailure, match=f"{HANDLE_FILE} is damaged .root is not"):
        Handle.load(tmp_path)


def test_a_handle_that_is_no_file_is_not_waited_for(tmp_path):
    (tmp_path / "elsewhere").write_text(json.dumps(handle(tmp_path).to_json()))
    path = tmp_path / HANDLE_FILE
    os.mkfifo(path)
    with pytest.raises(EnvironmentFailure, match="is a FIFO"):
        Handle.load(tmp_path)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentFailure, match="is a link"):
        Handle.load(tmp_path)


@pytest.mark.parametrize(
    "label", ["", "s9", "s9-0123456789c0ffe", "s9-0123456789c0ffee0", "s9-0123456789c0ffee/worker-1"]
)
def test_part_of_a_label_removes_nothing(monkeypatch, label):
    """Names of networks begin with labels: a prefix would be that of other runs, too."""
    asked = []
    monkeypatch.setattr(leftovers.removal, "remove", lambda *cluster: asked.append(cluster))
    with pytest.raises(EnvironmentFailure, match="is no label of a cluster"):
        leftovers.remove(label)
    leftovers.remove("s9-0123456789c0ffee", 1234)
    assert asked == [("s9-0123456789c0ffee", 1234)]
