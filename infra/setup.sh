#!/bin/sh
# Brings this checkout to a state in which everything runs: .venv as requirements.lock has it, a JVM, the jars.
# Does only what is missing. The arguments "chromium", "docker", "sshd" and "nftables" add what the tests with a browser,
# those of the drivers docker and netns, and those of partitions need.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 3; }

# Installs the first of the named Debian packages that this system's archive offers.
install_one_of() {
    root=''
    if [ "$(id -u)" != 0 ]; then
        root=sudo
        command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; } || fail_package 'no root rights' "$@"
    fi
    command -v apt-get >/dev/null || fail_package 'no apt-get on this system' "$@"
    say "updating the package lists"
    $root apt-get update -qq >&2 || fail_package 'apt-get update failed' "$@"
    for package in "$@"; do
        apt-cache show "$package" >/dev/null 2>&1 || continue
        say "installing $package"
        $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >&2 && return
    done
    fail_package 'apt-get could not install it' "$@"
}
fail_package() {
    why=$1
    shift
    fail "a system package is missing ($why): install $(echo "$*" | sed 's/ / or /g') and run make again"
}

# Prints the Python to build .venv with.
find_python() {
    for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null || continue
        echo "$python"
        return
    done
    found=$("${PYTHON:-python3}" --version 2>/dev/null) || found=none
    fail "Python 3.11 to 3.14 is needed (found: $found): install python3.11 or newer, or set PYTHON=/path/to/it"
}

# Prints the lines of the lock for one package, its hashes included.
locked() { awk -v start="$1==" '/^[^ ]/ { on = index($0, start) == 1 } on' requirements.lock; }

build_venv() {
    python=$(find_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -c 'import ensurepip, venv' 2>/dev/null || install_one_of "python$version-venv" python3-venv
    say "creating .venv with Python $version"
    [ ! -L .venv ] || rm .venv  # what the link leads to belongs to another checkout, and would be cleared
    "$python" -m venv --clear .venv
}

# The packages. uv fetches in parallel; pyspark, which is published as a source archive only, is built with the locked
# setuptools, so that nothing is executed that has no hash in the lock.
install_packages() {
    { locked uv && locked setuptools; } >.venv/bootstrap.txt &&
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/bootstrap.txt &&
        say "installing $(grep -c '^[a-z]' requirements.lock) Python packages (a few minutes the first time)" &&
        .venv/bin/uv pip sync --python .venv/bin/python --require-hashes --no-build-isolation requirements.lock &&
        .venv/bin/uv pip install --python .venv/bin/python --quiet --no-deps --no-index --no-build-isolation --editable .
}

# Packages, JVM and jars, where the packages are not as the lock has them: the JVM beside the packages, unless that has to
# ask for a password, and what was installed is compiled beside the download of the jars.
set_up() {
    grep -qsF "$PWD/.venv" .venv/pyvenv.cfg && .venv/bin/python -m pip --version >/dev/null 2>&1 || build_venv
    beside=''
    if [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; then
        (jvm) &
        beside=$!
    else
        jvm
    fi
    install_packages || {
        wait
        fail "the Python packages could not be installed (the reason is above): check network and disk, and run make again"
    }
    [ -z "$beside" ] || wait "$beside" || exit
    # Some packages have templates that end in .py and are no Python: that those cannot be compiled does not matter.
    .venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 &
    .venv/bin/python -m infra.services.jars >/dev/null || { status=$? && wait && exit "$status"; }
    wait
    echo "$1" >.venv/set-up
}

jvm() {
    if [ -z "${JAVA_HOME:-}" ] && ! .venv/bin/python -m infra.services.jvm >/dev/null 2>&1; then
        install_one_of openjdk-21-jre-headless openjdk-17-jre-headless default-jre-headless
    fi
    .venv/bin/python -m infra.services.jvm >/dev/null
}

# A missing browser is no error: the tests that need one are skipped, and say so.
add_chromium() {
    command -v chromium >/dev/null || (install_one_of chromium) || say "the browser tests will be skipped"
}

# Nor are missing packet filter rules.
add_nftables() {
    command -v nft >/dev/null || [ -x /usr/sbin/nft ] ||
        (install_one_of nftables) || say "the tests of partitions will be skipped"
}

# Nor is a missing sshd. Where systemd runs, the package would open the machine to logins, so that is its owner's choice.
add_sshd() {
    if command -v sshd >/dev/null || [ -x /usr/sbin/sshd ]; then
        return
    elif [ -d /run/systemd/system ]; then
        say "sshd is missing (apt-get install openssh-server): the tests of driver netns will be skipped"
    else
        (install_one_of openssh-server) || say "the tests of driver netns will be skipped"
    fi
}

# Nor is a missing Docker daemon: the tests start one of their own, as root, where its programs are there.
add_docker() {
    if command -v dockerd >/dev/null || [ -x /usr/sbin/dockerd ]; then
        return
    elif [ -d /run/systemd/system ]; then
        say "Docker is missing (apt-get install docker.io): the tests of driver docker will be skipped"
    else
        (install_one_of docker.io) || say "the tests of driver docker will be skipped"
    fi
}

exec 9<infra/setup.sh
flock 9 # two calls in one checkout: the second one waits, and finds everything done
# The scripts in .venv name their interpreter by its full path: a moved checkout needs a new one.
wanted="$PWD $(cat requirements.lock pyproject.toml infra/setup.sh | sha256sum)"
if [ "$(cat .venv/set-up 2>/dev/null)" = "$wanted" ]; then
    jvm
    .venv/bin/python -m infra.services.jars >/dev/null
else
    set_up "$wanted"
fi
for extra in "$@"; do
    case $extra in
    # Named unlike the program, which `command -v` would otherwise always find.
    chromium | docker | sshd | nftables) "add_$extra" ;;
    *) fail "unknown argument $extra: chromium, docker, sshd and nftables are known" ;;
    esac
done
