"""The type of a check, and which experiments it applies to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import pandas as pd

from experiments.engines import EngineName, ProtocolName
from experiments.recovery_modes import TELL_QUERIES, RecoveryMode
from experiments.spec import Experiment, LoadMode
from results.checks.evidence import Evidence
from results.checks.rules import TableCheck
from results.predictions.described import not_described
from results.predictions.replays import FEWEST_FAULTS


@dataclass(frozen=True)
class Parting:
    """How to find where a run parts from the model of a check: at the worst row of its subject.

    The rows need the column with the moment of the check's table (`results.views.causes.MOMENTS`).

    by     the column that says how far a row is from the model; the row with the highest value is the worst
    words  what happened in that row, for people
    """

    by: str
    words: Callable[[pd.Series], str]


@dataclass(frozen=True)
class Check(TableCheck[Evidence]):
    """One check of a run, and the experiments for which it has a meaning.

    asks, asked_of  what it decides, and of which experiments, in words: docs/reference/checks.md is made of them
    parting         of a check that holds rows with a moment against a model
    """

    _: KW_ONLY
    asks: str
    asked_of: str = "every experiment"
    applies: Callable[[Experiment], bool] = lambda experiment: True
    parting: Parting | None = None


def has_faults(experiment: Experiment) -> bool:
    """Whether any fault can strike."""
    return experiment.faults.can_fail


def saturates(experiment: Experiment) -> bool:
    """Only then is time without input no part of the run: the model assumes it, the second estimate needs it."""
    return experiment.load.mode is LoadMode.SATURATING


def is_to_be_busy(experiment: Experiment) -> bool:
    """Whether the load leaves no time without input. What recovers in parts also waits for input of parts that are
    down."""
    return saturates(experiment) and not experiment.engine.recovers_in_parts


def searches(experiment: Experiment) -> bool:
    """Whether the run looked for the rate that it can sustain."""
    return experiment.load.mode is LoadMode.SUSTAINABLE


def model_describes(experiment: Experiment) -> bool:
    """Whether the utilization model is of this experiment (`results.predictions.described`)."""
    return not_described(experiment) is None


def is_replayed(experiment: Experiment) -> bool:
    """Whether enough faults are expected to judge a run by a replay of them."""
    faults = experiment.fault_spec
    enough = faults.failure_rate * faults.duration_s >= FEWEST_FAULTS
    return has_faults(experiment) and model_describes(experiment) and enough


def is_dataflow(experiment: Experiment) -> bool:
    """Whether the protocol testbed executes the query."""
    return experiment.engine.name is EngineName.DATAFLOW


def takes_checkpoints(experiment: Experiment) -> bool:
    """Whether partitions of the testbed take checkpoints."""
    return is_dataflow(experiment) and experiment.engine.takes_checkpoints


def is_tentative(experiment: Experiment) -> bool:
    """Whether survivors put out tentative results while input is missing."""
    return is_dataflow(experiment) and experiment.engine.tentative_run


def keeps_output_log(experiment: Experiment) -> bool:
    """Whether operators of the testbed keep an output log."""
    return is_dataflow(experiment) and experiment.engine.protocol_run is ProtocolName.OUTPUT_LOG


def has_copies(experiment: Experiment) -> bool:
    """Whether partitions of the testbed have active copies."""
    return is_dataflow(experiment) and experiment.engine.replication_ratio_run > 0


def recovers_by_query(experiment: Experiment) -> bool:
    """Whether the testbed tells when each lost query was restored."""
    return has_faults(experiment) and experiment.engine.recovery_run in TELL_QUERIES


def names_queries(experiment: Experiment) -> bool:
    """Whether the latency of each query is measured."""
    return experiment.names_queries


def tells_relative_latency(experiment: Experiment) -> bool:
    """Whether lost queries have a usual latency to come back to: under a saturating load it grows from the start. A
    query is all that a sink puts out, so the sink must have one partition."""
    is_known = names_queries(experiment) and experiment.engine.partitions == 1
    return recovers_by_query(experiment) and is_known and experiment.load.mode is LoadMode.RATE


def recovers_by_task(experiment: Experiment) -> bool:
    """Whether Spark gives the tasks of a dead host to the others, so that the query goes on."""
    return experiment.engine.recovery_run is RecoveryMode.TASK


def has_oracle(experiment: Experiment) -> bool:
    """Whether there is an exact output to hold the output against; of an own job there is none."""
    return experiment.workload.has_oracle


def promises_each_result_once(experiment: Experiment) -> bool:
    """Whether a copy in the output is an error that an oracle shows: the testbed publishes in transactions, of which
    only those that were committed are read. Spark's sink promises each result at least once."""
    return has_oracle(experiment) and is_dataflow(experiment) and experiment.engine.puts_out_once


ASKED_OF = {
    None: "every experiment",
    has_oracle: "an oracle",
    is_dataflow: "the testbed",
    promises_each_result_once: "the testbed, a protocol that delivers each result once (all but `none`), and an oracle",
    is_tentative: "`engine.tentative`",
    recovers_by_query: "`engine.recovery` `query-centric` or `blocking`, and faults",
    names_queries: "workload `hashtags`",
    tells_relative_latency: "workload `hashtags`, `engine.partitions` 1, `load.mode` `rate`, `engine.recovery`"
    " `query-centric` or `blocking`, and faults",
    keeps_output_log: "protocol `output-log`",
    recovers_by_task: "`engine.recovery` `task`",
    has_copies: "`engine.recovery` `partially-active` with a ratio above 0",
    takes_checkpoints: "the testbed with a protocol that takes checkpoints",
    searches: "`load.mode` `sustainable`",
    saturates: "`load.mode` `saturating`",
    is_to_be_busy: "`load.mode` `saturating`, without partial recovery",
    has_faults: "faults",
    is_replayed: "at least 3 expected faults, if the model describes the experiment",
}
