"""`terraform init` writes a lock of providers beside a module. Users of the module commit it, this project does not."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "ignored"), [(".terraform.lock.hcl", False), (".terraform/providers", True), ("terraform.tfstate", True)]
)
@pytest.mark.parametrize("module", ["aws", "local"])
def test_the_lock_can_be_committed_and_state_and_providers_cannot(module, name, ignored):
    asked = ["git", "check-ignore", "--quiet", "--no-index", f"infra/terraform/{module}/{name}"]
    assert subprocess.run(asked, cwd=ROOT, check=False).returncode == (0 if ignored else 1)
