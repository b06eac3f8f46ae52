"""The login of somebody else's broker: exactly what every client of ours can use, and nothing of it is told."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from experiments.errors import BadInput, EnvironmentFailure
from infra.external.logins import broker_login, require_broker, spark_conf
from tests.unit.infra.services.refusing_broker import refusing_broker
from tests.unit.loopback import own_address

LINES = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "me",
    "sasl.password": "a=b c",
}


def written(folder: Path, **changes: str | None) -> Path:
    lines = {**LINES, **{name.replace("_", "."): value for name, value in changes.items()}}
    path = folder / "login"
    path.write_text("".join(f"{name} = {value}\n\n" for name, value in lines.items() if value is not None), "utf-8")
    return path


def test_a_login_is_read_in_the_form_of_the_runs_own(tmp_path: Path) -> None:
    assert broker_login(written(tmp_path)).splitlines() == [f"{name}={value}" for name, value in LINES.items()]
    assert broker_login(None) == spark_conf(None) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"sasl_mechanism": "SCRAM-SHA-512"},
        {"security_protocol": "PLAINTEXT"},
        {"sasl_password": None},
        {"sasl_username": ""},
        {"ssl_truststore": "/etc/store"},
    ],
)
def test_another_login_is_refused_without_its_password(changes: dict[str, str | None], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"^broker_login: '.*login' is not usable; allowed: a file of the lines") as told:
        broker_login(written(tmp_path, **changes))
    assert "a=b c" not in str(told.value)


def test_a_setting_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text("utf-8") + "sasl.username = you\n", "utf-8")
    with pytest.raises(BadInput, match=r"^broker_login"):
        broker_login(path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "conf").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match=r"^spark_conf: '.*conf' is not usable; allowed: a file that can be read"):
        spark_conf(tmp_path / "conf")


@pytest.mark.parametrize("line", ["spark.jars /a.jar", "  spark.jars=/a.jar", "spark.driver.extraClassPath : /a.jar"])
def test_settings_that_a_run_would_replace_are_refused_with_the_remedy(line: str, tmp_path: Path) -> None:
    (tmp_path / "conf").write_text(f"spark.authenticate true\n{line}\n", "utf-8")
    with pytest.raises(BadInput, match=r"^spark_conf: 'spark\.[a-zA-Z.]+' is not usable; .* in spark.jars.packages"):
        spark_conf(tmp_path / "conf")
    kept = "spark.jars.packages org.apache.hadoop:hadoop-aws:3.3.4\n# spark.jars /a.jar\n"
    (tmp_path / "conf").write_text(kept, "utf-8")
    assert spark_conf(tmp_path / "conf") == kept


def test_a_login_that_the_broker_refuses_is_told_before_the_run_and_is_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))  # a temporary file cannot be made
    login = broker_login(written(tmp_path, security_protocol="SASL_PLAINTEXT"))
    with (
        refusing_broker(own_address(21), "nobody of this name") as address,
        pytest.raises(EnvironmentFailure, match=r"refuses the login .*nobody of this name") as told,
    ):
        require_broker(address, login, limit_s=60.0)
    assert "a=b c" not in str(told.value)
