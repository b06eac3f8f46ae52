"""The jar cache, against a launcher that plays Ivy: it copies prepared files where the real one would retrieve them."""

import hashlib
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from experiments.errors import EnvironmentFailure
from infra.services import ivy as ivy_program
from infra.services import jars

CONTENT = {"connector/a-1.jar": b"connector", "broker/b-2.jar": b"broker", "broker/c-3.jar": b"another"}


@pytest.fixture(autouse=True)
def machine_with_java_and_jars() -> None:
    """Nothing is replaced: these tests are about the search."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lock = tmp_path / "jars.lock"
    lock.write_text("".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in CONTENT.items()))
    monkeypatch.setattr(jars, "LOCK", lock)
    monkeypatch.setenv("AFTERSHOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fill(folder: Path) -> Path:
    for name, data in CONTENT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs the launcher; returns the registry that it copies from. A file `down` there makes it fail like Ivy, and
    `stuck` has it wait for a server that says nothing more."""
    home, registry = tmp_path / "jdk", fill(tmp_path / "registry")
    (home / "bin").mkdir(parents=True)
    launcher = home / "bin" / "java"
    launcher.write_text(
        f"""#!/bin/sh
case "$*" in *-XshowSettings*) printf 'openjdk version "17"\\n java.home = {home}\\n' >&2; exit;; esac
echo x >>{tmp_path}/calls
echo "$*" >{tmp_path}/words
if [ -e {registry}/stuck ]; then printf "downloading https://maven/c-3.jar ...."; exec sleep 60; fi
if [ -e {registry}/down ]; then echo '  module not found: a;1'; cat {registry}/down; exit 1; fi
for word; do case "$word" in */jars/*) mkdir -p "${{word%%/\\[*}}"; cp -r {registry}/* "${{word%%/\\[*}}";; esac; done
"""
    )
    launcher.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return registry


def test_lists_the_class_paths_in_the_order_of_the_lock() -> None:
    folder = fill(jars.cache_folder())
    found = jars.ensure_jars()
    assert found.connector == [folder / "connector/a-1.jar"]
    assert found.broker == [folder / "broker/b-2.jar", folder / "broker/c-3.jar"]


def test_what_a_run_starts_takes_the_jars_that_it_began_with_and_looks_at_none(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(jars.cache_folder())
    began = jars.ensure_jars()
    monkeypatch.setattr(jars, "_verify", lambda *_: pytest.fail("it would compute digests"))
    assert jars.class_paths() == began


def test_a_changed_jar_is_named_even_if_size_and_time_are_the_same() -> None:
    jar = fill(jars.cache_folder()) / "broker/b-2.jar"
    before = jar.stat()
    jar.write_bytes(b"BROKER")
    os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(EnvironmentFailure) as failure:
        jars.ensure_jars()
    found, expected = (hashlib.sha256(data).hexdigest() for data in (b"BROKER", b"broker"))
    assert failure.value.cause == f"jar {jar} has digest {found}, expected {expected}"
    assert failure.value.remedy == f"delete {jars.cache_folder()} and run `make setup`"


def test_a_missing_jar_is_named() -> None:
    (fill(jars.cache_folder()) / "connector/a-1.jar").unlink()
    with pytest.raises(EnvironmentFailure, match=r"a-1\.jar cannot be read \(No such file"):
        jars.ensure_jars()


def test_downloads_once(ivy: Path, tmp_path: Path) -> None:
    first, second = jars.ensure_jars(), jars.ensure_jars()
    assert first == second
    assert first.connector[0].read_bytes() == b"connector"
    assert (tmp_path / "calls").read_text() == "x\n"
    assert [path.name for path in jars.cache_folder().parent.iterdir()] == [jars.cache_folder().name]


def test_the_connector_is_asked_for_in_the_version_of_pyspark(
    ivy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "version", {"pyspark": "9.8.7"}.__getitem__)
    jars.ensure_jars()
    words = (tmp_path / "words").read_text().split()
    assert "-Dspark.version=9.8.7" in words[: words.index("-jar")]
    assert 'name="spark-sql-kafka-0-10_2.13" rev="${spark.version}"' in jars.MODULES.read_text()


def test_two_at_once_both_get_the_jars(ivy: Path, cache: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: jars.ensure_jars(), range(2))
    assert first == second
    assert len(list((cache / "jars").iterdir())) == 1


def test_the_slower_of_two_downloads_gives_way(tmp_path: Path) -> None:
    theirs, ours = fill(jars.cache_folder()), fill(tmp_path / "ours")
    jars._keep(ours, theirs)
    assert jars.ensure_jars().connector[0].parent.parent == theirs


def test_a_download_with_a_wrong_digest_is_not_kept(ivy: Path, cache: Path) -> None:
    (ivy / "broker/b-2.jar").write_bytes(b"something else")
    with pytest.raises(EnvironmentFailure, match=r"b-2\.jar has digest .*nothing was kept"):
        jars.ensure_jars()
    assert list((cache / "jars").iterdir()) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("  Server access error at url (java.net.ConnectException: refused)", "Server access error at url .*refused"),
        ("  Host maven not found. url=https://maven/a-1.pom", "Host maven not found"),
        ("", "module not found: a;1"),
    ],
)
def test_a_failed_download_gives_ivys_reason_and_leaves_nothing(ivy: Path, cache: Path, line: str, reason: str) -> None:
    (ivy / "down").write_text(line)
    with pytest.raises(EnvironmentFailure, match=rf"the jars \({reason}") as failure:
        jars.ensure_jars()
    assert "check the network" in failure.value.remedy
    assert list((cache / "jars").iterdir()) == []


def test_a_server_that_says_nothing_more_is_given_up_and_so_is_the_download(
    ivy: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivy_program, "SILENCE_LIMIT_S", 0.5)
    (ivy / "stuck").touch()
    began = time.monotonic()
    with pytest.raises(EnvironmentFailure, match=r"stood still for 0\.5 s; check the network"):
        jars.ensure_jars()
    assert time.monotonic() - began < 30, "the launcher lives for a minute, unless it is killed"
    assert list((cache / "jars").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(ivy: Path, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(EnvironmentFailure, match=f"cannot store jars in {cache}") as failure:
        jars.ensure_jars()
    assert "AFTERSHOCK_CACHE" in failure.value.remedy


def test_another_lock_has_another_folder(cache: Path) -> None:
    before = jars.cache_folder()
    jars.LOCK.write_text("")
    assert before.parent == jars.cache_folder().parent == cache / "jars"
    assert before != jars.cache_folder()


def test_by_default_jars_are_kept_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFTERSHOCK_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jars.cache_folder().is_relative_to(tmp_path / ".cache" / "aftershock" / "jars")


def test_the_command_ends_with_one_line_and_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(fill(jars.cache_folder()) / "broker")
    assert jars.main() == 3
    assert capsys.readouterr().err.count("\n") == 1
