"""Virtual networks on one machine: one network namespace for each host, joined by a bridge. Needs root.

The bridge has a namespace to itself, so that the machine's firewall (Docker's, say) does not meet what hosts say to
each other. The machine's own namespace holds one interface of a cluster, the uplink, through which the controller
reaches the hosts. The namespaces have the cluster's label (`infra.tokens`) in their names. The uplink has a part of it
in its name, and as its alias the label and the cluster's root. So code that finds them knows to which cluster they
belong. Functions that make or use them take the token; functions that find them without a handle take the label.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments.errors import EnvironmentFailure
from infra import programs, tokens

NETWORK = ipaddress.IPv4Network("198.18.0.0/15")  # reserved for benchmarks: no host of the internet is hidden by it
PREFIX_LENGTH = 24
CONTROLLER_NUMBER = 254
NAMESPACES = Path("/run/netns")
NAMESPACE = re.compile(rf"aftershock-({tokens.PATTERN})-.+")
SWITCH = "switch"
INTERFACE = "eth0"  # of a host, in its namespace
COMMAND_LIMIT_S = 30.0


def namespace(token: str, host: str) -> str:
    """Name of the namespace of a host."""
    return f"aftershock-{tokens.label(token)}-{host}"


def uplink(label: str) -> str:
    """Name of the interface to the cluster in the controller's namespace; the kernel allows 15 characters."""
    return f"as-{label.partition('-')[2][:12]}"


def free_subnet() -> int:
    """The number of the first /24 of 198.18.0.0/15 that no route of this machine and no cluster of ours uses.

    A default route leads everywhere, and uses none. Some VPNs write it as two halves, of which each is a /1.
    """
    routes = json.loads(_ip("-j", "-4", "route", "show", "table", "all") or "[]")
    found = [ipaddress.IPv4Network(route["dst"], strict=False) for route in routes if route["dst"] != "default"]
    known = [network for network in found if network.prefixlen > 1]
    taken = set(map(tokens.subnet_of, labels()))
    for number, network in enumerate(NETWORK.subnets(new_prefix=PREFIX_LENGTH)):
        if number not in taken and not any(network.overlaps(other) for other in known):
            return number
    raise EnvironmentFailure(f"no /24 of {NETWORK} is free", "see `ip route` for what uses them, or `aftershock clean`")


def prefix_of(subnet: int) -> str:
    """The first three numbers of a /24, by its number in 198.18.0.0/15."""
    return str(NETWORK.network_address + (subnet << 8)).rpartition(".")[0]


def create(token: str, root: str, addresses: Mapping[str, str]) -> None:
    """Make a namespace for each host name, with its address on `eth0`, joined by a bridge and with the controller."""
    label, switch = tokens.label(token), namespace(token, SWITCH)
    up, prefix = uplink(label), next(iter(addresses.values())).rpartition(".")[0]
    _batch(f"netns add {namespace(token, host)}" for host in (SWITCH, *addresses))
    _batch([f"link add {up} type veth peer name uplink netns {switch}"])
    _ip("link", "set", up, "alias", f"{label} {root}")  # in a batch, `#` would end it, and so might a quote
    _batch(
        [
            f"link set {up} addrgenmode none",
            f"addr add {prefix}.{CONTROLLER_NUMBER}/{PREFIX_LENGTH} dev {up}",
            f"link set {up} up",
        ]
    )
    # Without link-local addresses, the interfaces send nothing by themselves.
    bridge = ["link add bridge type bridge stp_state 0", "link set bridge addrgenmode none up"]
    bridge += ["link set uplink addrgenmode none master bridge up"]
    cables = (line for host, address in addresses.items() for line in _cable(token, host, address))
    _batch([*bridge, *cables], switch)
    for host, address in addresses.items():
        _batch(_interface(address), namespace(token, host))


def _cable(token: str, host: str, address: str) -> list[str]:
    """From a port of the bridge to the host's interface, which has the same hardware address whenever it is made."""
    port, numbers = f"port-{address.rpartition('.')[2]}", (int(part) for part in address.split("."))
    hardware = ":".join(f"{number:02x}" for number in (2, 0, *numbers))
    peer = f"peer name {INTERFACE} address {hardware} netns {namespace(token, host)}"
    return [f"link add {port} type veth {peer}", f"link set {port} addrgenmode none master bridge up"]


def _interface(address: str) -> list[str]:
    lines = ["link set lo up", f"link set {INTERFACE} addrgenmode none"]
    return [*lines, f"addr replace {address}/{PREFIX_LENGTH} dev {INTERFACE}", f"link set {INTERFACE} up"]


def plug_in(token: str, host: str, address: str) -> None:
    """Give a host its interface and address again, as far as it lacks them."""
    if not addresses_of(token, host):
        if not has_interface(token, host):
            _batch(_cable(token, host, address), namespace(token, SWITCH))
        _batch(_interface(address), namespace(token, host))


def unplug(token: str, host: str) -> None:
    """Take the interface and address of a host away, if it has them."""
    if has_interface(token, host):
        _batch([f"link del {INTERFACE}"], namespace(token, host))


def has_interface(token: str, host: str) -> bool:
    """Whether the host has a namespace with its interface in it."""
    return any(link["ifname"] == INTERFACE for link in _links(token, host))


def addresses_of(token: str, host: str) -> list[str]:
    """The addresses under which others can reach the host."""
    up = (link for link in _links(token, host) if link["ifname"] == INTERFACE and "UP" in link["flags"])
    return [entry["local"] for link in up for entry in link["addr_info"]]


def _links(token: str, host: str) -> list[dict[str, Any]]:
    name = namespace(token, host)
    return json.loads(_ip("-n", name, "-j", "addr", "show") or "[]") if (NAMESPACES / name).exists() else []


def inside(token: str, host: str, *command: str) -> list[str]:
    """The command that runs `command` in the namespace of a host."""
    return ["nsenter", f"--net={NAMESPACES / namespace(token, host)}", *command]


def labels() -> set[str]:
    """The labels of all clusters that have a namespace on this machine."""
    return {label for label, _ in _named()}


def of(label: str) -> list[str]:
    """The names of the namespaces of a cluster."""
    return sorted(name for owner, name in _named() if owner == label)


def _named() -> list[tuple[str, str]]:
    """Label and name of every namespace of a cluster of ours."""
    names = os.listdir(NAMESPACES) if NAMESPACES.is_dir() else []
    return [(found[1], found[0]) for found in map(NAMESPACE.fullmatch, names) if found]


def root_of(label: str) -> str | None:
    """The root of the cluster, as its uplink tells; None when there is no uplink, or none that was finished."""
    owner, _, root = _alias(label).partition(" ")
    return root if owner == label and root else None


def _alias(label: str) -> str:
    try:
        return (Path("/sys/class/net") / uplink(label) / "ifalias").read_text().strip()
    except OSError:  # it may go at any moment
        return ""


def has_uplink(label: str) -> bool:
    """Whether the cluster has an uplink, finished or not; not one of another cluster, whose label begins alike."""
    return (Path("/sys/class/net") / uplink(label)).exists() and _alias(label).partition(" ")[0] in ("", label)


def processes_of(token: str, host: str) -> list[int]:
    """Ids of all processes that live in the namespace of a host."""
    return _living_in([namespace(token, host)])


def processes(label: str) -> list[int]:
    """Ids of all processes that live in the namespaces of a cluster. Only root can start a process there."""
    return _living_in(of(label))


def _living_in(names: Iterable[str]) -> list[int]:
    wanted = {_identity(NAMESPACES / name) for name in names} - {None}
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()] if wanted else []
    return [pid for pid in pids if _identity(Path(f"/proc/{pid}/ns/net")) in wanted]


def lives_in(pid: int, token: str, host: str) -> bool:
    """Whether a process lives in the namespace of a host."""
    identity = _identity(NAMESPACES / namespace(token, host))
    return identity is not None and _identity(Path(f"/proc/{pid}/ns/net")) == identity


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remove(label: str) -> None:
    """Remove the interfaces and namespaces of a cluster whose processes have ended; proves that all is gone.

    Idempotent, and indifferent to how far their creation came. Raises `EnvironmentFailure` for what does not go; all
    else is gone then. What goes by itself meanwhile, as by another removal, is no failure.
    """
    lines = [f"link del {uplink(label)}"] if has_uplink(label) else []
    failure: EnvironmentFailure | None = None
    try:
        _batch([*lines, *(f"netns del {name}" for name in of(label))], go_on=True)
    except EnvironmentFailure as error:
        failure = error
    left = [*of(label), *([uplink(label)] if has_uplink(label) else [])]
    if left:
        why = f": {failure.cause}" if failure else ""
        raise EnvironmentFailure(f"{', '.join(left)} cannot be removed{why}", "see `ip netns` and `ip link`")


def _batch(lines: Iterable[str], name: str | None = None, *, go_on: bool = False) -> None:
    """Run lines of `ip` by one process, in a namespace if one is named; `go_on`: continue after a line that fails."""
    text = "".join(f"{line}\n" for line in lines)
    if text:
        _ip(*(["-n", name] if name else []), *(["-force"] if go_on else []), "-batch", "-", text=text)


def ip_program() -> str:
    """The path of `ip`; raises `EnvironmentFailure` without one."""
    found = programs.find("ip")
    if found is None:
        raise EnvironmentFailure("`ip` is missing", "install iproute2")
    return found


def _ip(*arguments: str, text: str = "") -> str:
    try:
        done = programs.run(ip_program(), *arguments, text=text, limit_s=COMMAND_LIMIT_S)
    except OSError as error:
        raise EnvironmentFailure(f"`ip`: {error.strerror}", "see the kernel's log") from None
    if done.returncode:
        raise EnvironmentFailure(f"`ip` failed ({' '.join(done.stderr.split())[:300]})", "see `ip netns` and `ip link`")
    return done.stdout
