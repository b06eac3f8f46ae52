"""What Spark's daemons are told."""

from __future__ import annotations

import shlex

import pytest

from infra.cluster import Handle, Host, Role
from infra.services import spark


@pytest.mark.parametrize("folder", ["/runs/one", "/my runs/one", "/a 'b' \"c\" \\d/one"])
def test_the_master_keeps_what_it_remembers_in_a_folder_of_any_name(folder: str) -> None:
    """Spark takes the options apart at blanks, quotes and backslashes, much as a shell does."""
    hosts = {"gateway": Host("gateway", "127.0.9.1", Role.GATEWAY, 1, 512)}
    handle = Handle("one", "local", "s9-0123456789c0ffee", folder, hosts)
    options = shlex.split(spark.daemon_environment(handle, "gateway")["SPARK_MASTER_OPTS"])
    kept = f"-Dspark.deploy.recoveryDirectory={folder}/hosts/gateway/spark-master"
    assert [option for option in options if "Directory" in option] == [kept]
    assert all(option.startswith("-Dspark.deploy.recovery") for option in options)
