"""A value of an option that cannot be used is told in one line, before anything is measured."""

from __future__ import annotations

from argparse import ArgumentTypeError
from importlib import import_module

import pytest

from benchmarks.arguments import above_zero, at_least, at_least_one, from_0_to_1
from benchmarks.testbed import memory


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "x", "1e3", "²"])
def test_what_is_no_whole_number_above_0_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="is not usable; allowed: a whole number, at least 1"):
        at_least_one(text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "", "x"])
def test_what_is_no_number_above_0_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="is not usable; allowed: a number above 0"):
        above_zero(text)


@pytest.mark.parametrize("text", ["-0.1", "1.01", "nan", "inf", "", "x"])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="is not usable; allowed: a number from 0 to 1"):
        from_0_to_1(text)


def test_what_can_be_used_is_taken():
    assert (from_0_to_1("0"), from_0_to_1("0.5"), from_0_to_1("1")) == (0.0, 0.5, 1.0)
    assert (at_least_one("12"), at_least(0)("0"), above_zero("12"), above_zero("1e-3")) == (12, 0, 12.0, 0.001)


@pytest.mark.parametrize(
    ("program", "words", "where"),
    [
        ("testbed.kafka_throughput", "--repeats 0", "--repeats"),
        ("testbed.protocol_shares", "--records 1 0", "--records"),
        ("testbed.reached", "--kills 0", "--kills"),
        ("testbed.reached", "--ratio 2", "--ratio"),
        ("testbed.kills", "--ratio 50", "--ratio"),
        ("testbed.kills", "--standby -1", "--standby"),
        ("testbed.copies_throughput", "--shares 0.5 5", "--shares"),
        ("testbed.slot", "--cpu 0", "--cpu"),
        ("testbed.generator", "--repeats 0", "--repeats"),
        ("testbed.pause", "--changed 255", "--changed"),
        ("testbed.intake_latency", "--spare-lines -1", "--spare-lines"),
        ("engines.side_by_side", "--warm nan", "--warm"),
        ("injector.burst_lateness", "few", "bursts"),
        ("injector.kill_lateness", "3 kill 0", "apart_s"),
        ("injector.scale", "0", "hosts"),
        ("orchestration.journal_polls", "--polls 1", "--polls"),
        ("orchestration.serve_idle", "soon", "seconds"),
        ("regressions.check_power", "--runs 0", "--runs"),
        ("regressions.simulated_nights", "0", "histories"),
        ("regressions.real_nights", "--plot nowhere/nights.svg", "--plot"),
    ],
)
def test_a_benchmark_says_which_value_it_cannot_use(program, words, where, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [program, *words.split()])
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.{program}").main()
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"argument {where}: " in last
    assert "is not usable; allowed: " in last


@pytest.mark.parametrize("program", ["injector.kill_lateness", "injector.scale", "orchestration.no_fault_overhead"])
def test_a_benchmark_that_takes_no_options_explains_itself(program, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [program, "--help"])
    with pytest.raises(SystemExit, match="0"):
        import_module(f"benchmarks.{program}").main()
    assert "options:" in capsys.readouterr().out


def test_memory_is_not_judged_by_a_few_minutes(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["memory", "--minutes", "1"])
    with pytest.raises(SystemExit) as ended:
        memory.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("--minutes: 1 is not usable; allowed: at least 10\n")
