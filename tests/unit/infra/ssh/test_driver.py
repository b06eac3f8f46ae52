"""What the ssh driver tells of machines that are not given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from infra.cluster import Handle, Host
from infra.ssh.driver import SshDriver
from tests.unit.infra.ssh.test_logins import laid_out


class OutOfReach(SshDriver):
    """Reaches no machine."""

    def _vacate(self, handle: Handle, host: Host) -> str:
        return f"{host.name} cannot be reached"


def test_every_machine_that_is_not_given_up_is_told(tmp_path: Path) -> None:
    handle = laid_out(tmp_path, gateway="127.0.0.1", worker="127.0.0.2")
    with pytest.raises(EnvironmentFailure) as failed:
        OutOfReach().destroy(handle)
    assert failed.value.cause == "gateway cannot be reached; worker-1 cannot be reached"
    assert failed.value.remedy == "mend that and run `aftershock clean run-1`"
