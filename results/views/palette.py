"""The colours of plots and charts: each has one meaning everywhere.

People with any colour vision tell apart the colours that stand in one plot; a test holds that. The pages have the same
colours (`plugins/static/aftershock.css`).
"""

from __future__ import annotations

from results.summary.findings import PHASES
from results.tables.schema import LedgerClass
from results.views.style import BLUE, GREEN, GREY, INK, ORANGE, SKY, YELLOW

MEASURED = BLUE  # what the run did
MODEL = INK  # what a model says that it should have done; dashed where it is a line
ASKED = GREY  # what was asked of the run: records that were due, queries that were told to roll back
FAULT = "#c1272d"  # a line
CHECKPOINT = SKY
TENTATIVE = "#7b61c4"  # the time in which results are tentative and not yet corrected

IDLE = "#dde2e8"
_DETECT, _RESTART = "#6b1f4d", "#b8558c"
CLASS_COLOURS = {
    LedgerClass.USEFUL: GREEN,
    LedgerClass.CHECKPOINT: CHECKPOINT,
    LedgerClass.LOST: ORANGE,
    LedgerClass.DETECT: _DETECT,
    LedgerClass.RESTART: _RESTART,
    LedgerClass.WARM_UP: "#8c6d31",
    LedgerClass.IDLE: IDLE,
}
PHASE_COLOURS = dict(zip(PHASES, (_DETECT, _RESTART, YELLOW, "#8fcfc0"), strict=True))
PHASE_NAMES = {phase: phase.replace("_", "-") for phase in PHASES}
SHADE = 0.45  # how opaque a phase is where it lies behind a line
