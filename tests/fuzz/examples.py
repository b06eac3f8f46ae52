"""The documents of the repository, by what reads them; of the kinds that it has no file of, one written here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.plan import load_fault_spec
from experiments import external_cluster, inventory, matrix, spec
from experiments.faults import FaultSpec
from experiments.trace import with_trace
from models.topology import load_topology
from tests.unit.ssh_keys import new_key

ROOT = Path(__file__).parents[2]
FAULT_SPECS = ("faults.yaml", "rack-faults.yaml", "services.yaml")
HOSTS = {f"node-{number}": ("rack-a",) for number in range(1, 4)}
CSV_TRACE = (
    b"at,targets,kind,heal_after,cause,peers,direction,cpu_share,delay\n"
    b'1.5,node-1;node-2,pause,30,rack,,,,\n20,node-2,,,,,,,\n21.5,"node-3",slow,2,,,,0.5,0.1\n'
    b"22,node-1,partition,5,switch,gateway;node-3,in,,\n"
)
JSON_TRACE = (
    b'{"events": [{"at": 1.5, "kind": "pause", "targets": ["node-1", "node-2"], "cause": "rack", "heal_after": 30.0},\n'
    b' {"at": 3, "kind": "partition", "targets": ["node-3"], "cause": "x", "heal_after": 2, "peers": ["gateway"]}]}\n'
)


@dataclass(frozen=True)
class Kind:
    """Documents of a kind: the name that a file of it has, examples, and what reads one."""

    file: str
    examples: tuple[bytes, ...]
    read: Callable[[Path], object]


def kinds(folder: Path) -> dict[str, Kind]:
    """Every kind of document; `folder` gets the private key that inventories name, and is where they have to be."""
    experiments = tuple(path.read_bytes() for path in sorted((ROOT / "experiments" / "examples").glob("*.yaml")))
    own_job = ROOT / "docs/examples/own-job/experiment.yaml"
    matrices = (*sorted((ROOT / "experiments/matrices").glob("*.yaml")), ROOT / "docs/examples/matrix.yaml")
    faults = tuple((ROOT / "docs/examples" / name).read_bytes() for name in FAULT_SPECS)
    topology = (ROOT / "docs/examples/topology.json").read_bytes()
    clusters = tuple(path.read_bytes() for path in sorted((ROOT / "docs/examples/external").glob("*/cluster.json")))
    return {
        "experiment": Kind("e.yaml", (*experiments, own_job.read_bytes()), lambda path: spec.load(str(path))),
        "matrix": Kind("m.yaml", tuple(map(Path.read_bytes, matrices)), lambda path: matrix.load(str(path))),
        "fault spec": Kind("f.yaml", faults, load_fault_spec),
        "topology": Kind("t.json", (topology,), load_topology),
        "inventory": Kind("i.json", (_inventory(folder),), inventory.load),
        "existing cluster": Kind("c.json", clusters, external_cluster.load),
        "trace (CSV)": Kind("t.csv", (CSV_TRACE,), _replayed),
        "trace (JSON)": Kind("trace.json", (JSON_TRACE,), _replayed),
    }


def _replayed(path: Path) -> FaultSpec:
    return with_trace(FaultSpec(duration=100, hosts=HOSTS, trace=str(path)))


def _inventory(folder: Path) -> bytes:
    usual = {"user": "me", "key_file": "key", "host_key": new_key(folder / "key"), "cores": 2, "memory_mb": 2048}
    hosts = [
        {"name": "gateway", "role": "gateway", "address": "198.18.0.1", **usual},
        {"name": "worker-1", "address": "w1.example.org", "internal_address": "10.0.0.2", "port": 2222, **usual},
        {"name": "worker-2", "address": "2001:db8::3", "domains": ["rack-a", "power"], **usual},
    ]
    return json.dumps({"hosts": hosts}, indent=1).encode()
