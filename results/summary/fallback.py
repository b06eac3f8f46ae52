"""The experiment that a run really was, if it recovered in another way than requested.

A dataflow with a nondeterministic operator cannot be recovered in parts. The run then falls back to recovery `global`
with protocol `coordinated`, and is judged by what these promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from experiments.engines import ProtocolName
from experiments.recovery_modes import RecoveryMode
from experiments.spec import Experiment


def fell_back(facts: Mapping[str, Any] | pd.Series | None) -> str | None:
    """What a run did instead of what was asked and why, by its row of the table `runs`; None if nothing."""
    told = None if facts is None else facts.get("fell_back")
    return told if isinstance(told, str) else None


def as_it_recovered(experiment: Experiment, facts: Mapping[str, Any] | pd.Series | None) -> Experiment:
    """The experiment with the recovery and the protocol that its run had; itself if the run did as it was asked."""
    if facts is None or fell_back(facts) is None:
        return experiment
    return with_recovery(experiment, str(facts["recovery"]), str(facts["protocol"]))


def with_recovery(experiment: Experiment, recovery: str, protocol: str) -> Experiment:
    """The experiment with this recovery and protocol; without tentative output if either is another one."""
    engine = experiment.engine
    became = RecoveryMode(recovery), ProtocolName(protocol)
    if became == (engine.recovery_run, engine.protocol_run):
        return experiment
    changed = {"recovery": became[0], "protocol": became[1], "tentative": False}
    return experiment.model_copy(update={"engine": engine.model_copy(update=changed)})
