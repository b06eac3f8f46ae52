"""What the netns driver checks and writes before it touches anything."""

import os
import shutil
import subprocess
import sys

import pytest

from experiments.errors import BadInput, EnvironmentFailure
from experiments.spec import ClusterSpec
from infra import programs
from infra.cluster import Handle, Host, Role
from infra.launch import REPOSITORY
from infra.netns import driver as netns
from tests.unit.infra.external.clusters import program

HOSTS = {"gateway": Host("gateway", "198.18.7.1", Role.GATEWAY, 1, 512)}
PROVISION = """
import sys
from pathlib import Path
from experiments.spec import ClusterSpec
from infra.netns.driver import NetnsDriver
NetnsDriver().provision(ClusterSpec(driver="netns"), "run-1", Path(sys.argv[1]))
"""
REFUSAL = "cluster.driver: 'netns' is not usable; allowed: local, or netns as root with CAP_NET_ADMIN and CAP_SYS_ADMIN"


def test_sshd_listens_on_the_address_of_its_host_and_only_takes_the_key_of_the_run(tmp_path):
    handle = Handle("run-1", "netns", "n7-0123456789abcdef", str(tmp_path), HOSTS)
    lines = netns.sshd_config(handle, "gateway").splitlines()
    assert "ListenAddress 198.18.7.1:22" in lines
    assert f'HostKey "{tmp_path}/ssh/gateway"' in lines
    assert f'AuthorizedKeysFile "{tmp_path}/ssh/client.pub"' in lines
    assert {"PasswordAuthentication no", "AuthenticationMethods publickey", "DisableForwarding yes"} <= set(lines)


@pytest.mark.parametrize("name", ["a run", "100%", "c#", 'a"b', "a\\b", "it's"])
def test_sshd_finds_the_keys_of_a_run_whatever_its_folder_is_called(tmp_path, name):
    if not (sshd := programs.find("sshd")) or not programs.find("ssh-keygen"):
        pytest.skip("no sshd: apt-get install openssh-server")
    handle = Handle("run-1", "netns", "n7-0123456789abcdef", str(tmp_path / name), HOSTS)
    keys, config = tmp_path / name / "ssh", tmp_path / "config"
    keys.mkdir(parents=True)
    netns._make_key(keys / "gateway")
    config.write_text(netns.sshd_config(handle, "gateway"))
    if os.geteuid() == 0:
        netns.PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)  # as the driver does
    done = subprocess.run([sshd, "-T", "-f", config], capture_output=True, text=True)
    if "privilege separation" in done.stderr:
        pytest.skip(done.stderr)
    understood = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert understood["hostkey"] == str(keys / "gateway"), done.stderr
    assert understood["authorizedkeysfile"].replace("%%", "%") == str(keys / "client.pub")
    assert "%%" in understood["authorizedkeysfile"] or "%" not in name, "sshd would look for another name, or end"


def test_a_program_that_is_missing_is_named_with_its_package(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(programs, "SBIN", "/nowhere")
    with pytest.raises(EnvironmentFailure, match=r"sshd is missing.*apt-get install openssh-server"):
        netns.find_program("sshd")


@pytest.mark.parametrize(
    ("script", "reason"),
    [("exec sleep 60", r"no end in 0.1 s\); see the machine"), ("echo full >&2; exit 1", r"full\); see the disk")],
)
def test_a_key_that_cannot_be_made_is_told(tmp_path, monkeypatch, script, reason):
    program(tmp_path / "ssh-keygen", f"#!/bin/sh\n{script}\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(netns, "KEY_LIMIT_S", 0.1 if "sleep" in script else 60.0)
    with pytest.raises(EnvironmentFailure, match=rf"^ssh-keygen could not make \S+/client \({reason}$"):
        netns._make_key(tmp_path / "client")


@pytest.mark.extended
@pytest.mark.parametrize("capability", ["net_admin", "sys_admin"])
def test_root_without_its_capabilities_is_refused_before_anything_is_touched(tmp_path, capability):
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv (util-linux) to take a capability away")
    command = ["setpriv", "--bounding-set", f"-{capability}", sys.executable, "-c", PROVISION, str(tmp_path / "root")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stderr.strip().endswith(REFUSAL)
    assert not (tmp_path / "root").exists()


def test_others_than_root_are_refused():
    if not os.geteuid():
        pytest.skip("runs as root")
    with pytest.raises(BadInput, match="netns as root"):
        netns.NetnsDriver().check(ClusterSpec())
