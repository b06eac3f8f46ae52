"""The handle of a cluster: a value that passes between tasks as JSON and through a file."""

import json

from infra.cluster import HANDLE_FILE, Handle, Host, Role

HOSTS = {
    "gateway": Host("gateway", "127.0.9.1", Role.GATEWAY, 1, 640),
    "worker-1": Host("worker-1", "127.0.9.2", Role.WORKER, 2, 700),
    "worker-2": Host("worker-2", "127.0.9.3", Role.WORKER, 2, 700),
}


def handle(root) -> Handle:
    return Handle("run-1", "local", "s9-c0ffee", str(root), HOSTS, "127.0.9.1:9092", "spark://127.0.9.1:7077")


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


def test_workers_gateway_and_directories(tmp_path):
    made = handle(tmp_path)
    assert [worker.name for worker in made.workers] == ["worker-1", "worker-2"]
    assert made.gateway.name == "gateway"
    assert made.directory("worker-2") == tmp_path / "hosts" / "worker-2"
