"""Colours of a run's plots: told apart with any colour vision, and the same on pages and in reports."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from results.views import palette
from results.views.style import PAPER

ROOT = Path(__file__).parents[4]
PAGES = (ROOT / "plugins/static/aftershock.css").read_text()
REPORT = (ROOT / "results/templates/style.css").read_text()
LINES = {name: getattr(palette, name.upper()) for name in ("measured", "model", "asked", "fault", "checkpoint")}
LIGHT = (
    LINES
    | {"tentative": palette.TENTATIVE}
    | {f"phase-{phase}": colour for phase, colour in palette.PHASE_COLOURS.items()}
    | {f"ledger-{name}": colour for name, colour in palette.CLASS_COLOURS.items()}
)
# Machado, Oliveira and Fernandes 2009, full severity; on linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = XYZ.sum(axis=1)
APART, SHADES_APART = 12.0, 8.0  # CIE 1976 distance; 2.3 can just be noticed side by side


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def lab(srgb: np.ndarray, vision: np.ndarray) -> np.ndarray:
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    scaled = XYZ @ np.clip(vision @ linear, 0, 1) / WHITE
    f = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours: dict[str, np.ndarray]) -> tuple[float, str, str, str]:
    """The two colours that are hardest to tell apart, with their distance, and for whom they are."""
    return min(
        (float(np.linalg.norm(lab(colours[one], matrix) - lab(colours[other], matrix))), vision, one, other)
        for one, other in combinations(colours, 2)
        for vision, matrix in VISIONS.items()
    )


def of_pages(theme: str) -> dict[str, str]:
    """The variables of the pages' style sheet that are colours of charts of a run."""
    declared = dict(re.findall(r"--([\w-]+): ([^;]+);", PAGES))

    def resolved(name: str) -> str:
        value = declared[name]
        if other := re.fullmatch(r"var\(--([\w-]+)\)", value):
            return resolved(other[1])
        light, dark = re.fullmatch(r"light-dark\((#\w{6}), (#\w{6})\)", value).groups()
        return {"light": light, "dark": dark}[theme]

    return {name: resolved(name) for name in [*LIGHT, "card"]}


THEMES = {"plots": LIGHT | {"card": PAPER}, "light": of_pages("light"), "dark": of_pages("dark")}


@pytest.mark.parametrize("theme", THEMES)
def test_colours_of_one_plot_are_told_apart(theme):
    for prefix in ("ledger-", "phase-"):
        colours = {name: rgb(colour) for name, colour in THEMES[theme].items() if name.startswith(prefix)}
        assert nearest(colours)[0] > APART, nearest(colours)
    lines = {name: rgb(THEMES[theme][name]) for name in (*LINES, "card")}
    assert nearest(lines)[0] > APART, nearest(lines)


@pytest.mark.parametrize("theme", THEMES)
def test_shades_behind_lines_are_told_apart(theme):
    paper = rgb(THEMES[theme]["card"])
    shaded = {
        name: palette.SHADE * rgb(colour) + (1 - palette.SHADE) * paper
        for name, colour in THEMES[theme].items()
        if name.startswith("phase-")
    }
    assert nearest(shaded | {"paper": paper})[0] > SHADES_APART, nearest(shaded | {"paper": paper})


def test_the_colours_that_were_confused_would_be_noticed():
    """Restart and catch-up as they once were, for people with deuteranopia."""
    assert nearest({"restart": rgb("#cc79a7"), "catch-up": rgb("#8a929c")})[0] < APART


def test_each_meaning_has_a_colour_of_its_own():
    """Phases and classes of the ledger share those that they both have, and checkpoints are those of the ledger."""
    shared = {"ledger-detect", "ledger-restart", "ledger-checkpoint"}
    own = [colour for name, colour in LIGHT.items() if name not in shared]
    assert len(own) == len(set(own))


def test_pages_have_the_colours_of_plots():
    assert {name: colour for name, colour in of_pages("light").items() if name in LIGHT} == LIGHT


def test_reports_have_the_colours_of_plots_and_in_the_dark_those_of_pages():
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6});", part)) for part in REPORT.split("@media"))
    names = {"measured": "measured", "fault": "fault", "idle": "ledger-idle"}
    names |= {palette.PHASE_NAMES[phase]: f"phase-{phase}" for phase in palette.PHASE_COLOURS}
    for theme, found in (("light", light), ("dark", dark)):
        assert {name: found[name] for name in names} == {name: of_pages(theme)[whole] for name, whole in names.items()}


def test_charts_of_a_run_name_their_colours_by_meaning():
    """No script of theirs picks a hue: it could mean two things."""
    script = (ROOT / "plugins/static/run-charts.js").read_text()
    assert not re.findall(r'"(?:red|orange|blue|green|pink|sky|yellow|grey)"', script)
