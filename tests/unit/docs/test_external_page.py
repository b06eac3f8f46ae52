"""The page of existing clusters names the variables of a command, and how long a look before a strike may take."""

import re
from pathlib import Path

from chaos.injection.planned_strike import NS, PREPARE_AHEAD_NS, SHOOT_AHEAD_NS
from infra.external.commands import WHERE
from infra.launch import INHERITED

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "external-cluster.md").read_text(encoding="utf-8")


def test_the_variables_of_a_command_are_named():
    told = PAGE.partition("It gets only these variables: ")[2].partition(". ")[0]
    assert set(re.findall(r"`(\w+)`", told)) == {*INHERITED, *WHERE}


def test_the_time_of_the_look_before_a_strike_is_the_injectors():
    assert f"`prove_healed` may take {(PREPARE_AHEAD_NS - SHOOT_AHEAD_NS) / NS:g} s." in PAGE
