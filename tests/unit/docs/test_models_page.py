"""The page of the models lists each of them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8").partition("\n## ")[0]


def unlisted(page):
    """The modules and packages of `models/` that the page does not name."""
    found = {path.stem for path in (ROOT / "models").glob("*.py")} - {"__init__"}
    found |= {f"{path.parent.name}/" for path in (ROOT / "models").glob("*/__init__.py")}
    return found - set(re.findall(r"`(\w+/?)`", page))


def test_each_model_is_listed():
    assert unlisted(PAGE) == set()


def test_a_model_that_is_not_listed_is_noticed():
    assert unlisted(PAGE.replace("`gain`", "").replace("`replay/`", "")) == {"gain", "replay/"}
