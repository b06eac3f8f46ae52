"""Which signals end a command, and which one that was ignored when it began does not."""

import os
import signal

import pytest

from aftershock.airflow import signals


@pytest.fixture(autouse=True)
def usual():
    """A hang-up as a shell leaves it to a command, whoever runs the tests."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_a_hang_up_ends_a_command_as_an_interrupt_does():
    with pytest.raises(KeyboardInterrupt), signals.interrupting():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_what_nohup_has_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals.interrupting():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_clean_up_is_not_cut_short():
    with signals.interrupting():
        with signals.ignored():
            os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
