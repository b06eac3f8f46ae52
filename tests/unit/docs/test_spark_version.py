"""Wherever a page names a version of Spark, this is the one that is installed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
REQUIREMENTS = (ROOT / "requirements.in").read_text(encoding="utf-8")
(PINNED,) = re.findall(r"^pyspark==(\S+)$", REQUIREMENTS, re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "docs/start/first-own-job.md"])
def test_the_version_of_spark_is_the_pinned_one(page):
    named = re.findall(r"Spark (\d+(?:\.\d+)+)", (ROOT / page).read_text(encoding="utf-8"))
    assert named
    for version in named:
        assert f"{PINNED}.".startswith(f"{version}."), f"{page} names Spark {version}, installed is {PINNED}"
