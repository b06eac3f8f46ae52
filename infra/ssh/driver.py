"""The ssh driver: its hosts are the machines of an inventory (docs/reference/inventory.md), reached over SSH.

Nothing is installed there. Every machine sees the checkout with its .venv, Java, the folder of jars and the run's
directory at the paths that they have here. A run claims its machines (`infra.ssh.claims`) and leaves them as they were.
"""

from __future__ import annotations

import logging
import secrets
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import GATEWAY, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from experiments.waiting import poll_while
from infra.cluster import Handle, Host, untold
from infra.remote import requests, ssh
from infra.remote.hosts import ANSWER_LIMIT_S, RemoteHosts
from infra.remote.session import Session
from infra.services import startup
from infra.ssh import logins, survey
from infra.ssh.logins import called, lay_out
from infra.strikes.death import POLL_S, PROOF_LIMIT_S, Death

log = logging.getLogger(__name__)


class SshDriver(RemoteHosts):
    """Implements `infra.cluster.Driver` on machines that exist already, and stay."""

    name = ClusterDriver.SSH
    lacking = ", whose machines have no power switch and no disk that may be filled"
    agent = "infra.ssh.machine_agent"

    def __init__(self) -> None:
        super().__init__(lambda handle, host, command: ssh.SshSession(logins.connect(handle, host), command))
        self._refusals: dict[ClusterSpec, dict[str, dict[str, str | None]]] = {}  # by host, then by what is refused

    def check(self, spec: ClusterSpec) -> None:
        """Log in to every machine and look for what a run needs.

        Raises `BadInput` about the inventory, `EnvironmentFailure` for a machine that cannot be reached, shows another
        host key than the pinned one, lacks something, or belongs to another run. Touches nothing.
        """
        with tempfile.TemporaryDirectory(prefix="aftershock-check-") as folder:
            handle = lay_out(spec, "check", Path(folder))
            try:
                found = self.at_once(handle, partial(survey.check, self))
            finally:
                self.close(handle)
        self._refusals[spec] = dict(zip(handle.hosts, found, strict=True))

    def obstacle(self, spec: ClusterSpec, kind: FaultKind, options: FaultOptions) -> str | None:
        """What one of these machines cannot do."""
        if reason := ssh.refusal(options.delay):
            return reason
        asked = "partition" if kind is FaultKind.PARTITION else "delay" if options.delay else None
        if asked is None:
            return None
        if spec not in self._refusals:
            self.check(spec)
        for host, refusals in self._refusals[spec].items():
            if host != GATEWAY and (reason := refusals[asked]):
                return f"no {asked} on {host} ({reason})"
        return None

    def provision(self, spec: ClusterSpec, run_id: str, root: Path, tell: Callable[[str], None] = untold) -> Handle:
        """Check the spec, claim the machines and start what runs on them (`infra.services.startup.provision`)."""
        self.check(spec)
        return startup.provision(
            self, spec, root, lambda: lay_out(spec, run_id, root), self._move_in, tell, elsewhere=True
        )

    def _move_in(self, handle: Handle) -> None:
        """Claim every machine, and see that all share the run's directory."""
        logins.copy_keys(handle)
        self.at_once(handle, self._claim)
        path, nonce = Path(handle.root) / "shared", secrets.token_hex(16)
        path.touch(mode=0o600)
        path.write_text(nonce, encoding="utf-8")
        self.at_once(handle, partial(self._share, path, nonce))
        for name, machine in logins.machines_of(handle).items():
            log.info("%s is %s (%s)", name, machine.name, handle.hosts[name].address)

    def _claim(self, handle: Handle, host: Host) -> None:
        other = self.ask(handle, host, requests.ClaimMachine(handle.run_id, handle.root))
        if other:
            raise survey.taken_by(called(handle, host), other["run_id"], other["file"])

    def _share(self, path: Path, nonce: str, handle: Handle, host: Host) -> None:
        wrong = self.ask(handle, host, requests.ShareFile(str(path), nonce))
        echo = path.with_name(f"{path.name}-{host.name}")
        if not wrong and not (echo.exists() and echo.read_text(encoding="utf-8") == nonce):
            wrong = "what it writes there does not appear here"
        if wrong:
            cause = f"{called(handle, host)} does not share {handle.root} with this machine ({wrong})"
            raise EnvironmentFailure(cause, "mount the folder of AFTERSHOCK_HOME there, at this path, to be written to")

    def destroy(self, handle: Handle) -> None:
        """End everything of the run on its machines and on this one, and give the machines up; they stay."""
        jobs = (
            Death(f"{handle.token}/controller", handle.gateway.address, own_ports=frozenset()).fire().left["survivors"]
        )
        problems = [f"{jobs} processes of run {handle.run_id} here survive SIGKILL"] if jobs else []
        problems += filter(None, self.at_once(handle, self._vacate))
        self.close(handle)
        if problems:
            raise EnvironmentFailure("; ".join(problems), f"mend that and run `aftershock clean {handle.run_id}`")

    def _vacate(self, handle: Handle, host: Host) -> str:
        """What is left of the run on a machine, in words; nothing if nothing is."""
        try:
            left = self.ask(handle, host, requests.VacateMachine(), 2 * PROOF_LIMIT_S + ANSWER_LIMIT_S)
            left["agents"] = self._dismiss(self.session(handle, host))
        except EnvironmentFailure as failure:
            return failure.cause
        found = ", ".join(f"{count} {what}" for what, count in left.items() if count)
        return found and f"{called(handle, host)} still has {found} of run {handle.run_id}"

    def _dismiss(self, session: Session) -> int:
        """Let an agent go, the last process of the run on its machine; returns how many are left."""
        session.tell(**requests.Leave().to_json())
        return int(poll_while(lambda: session.alive, interval_s=POLL_S, limit_s=PROOF_LIMIT_S))
