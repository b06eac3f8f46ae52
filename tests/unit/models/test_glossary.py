"""The glossary names things that the code has."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")


def test_every_name_on_the_page_is_in_the_code():
    rows = [line for line in PAGE.partition("## Utilization")[2].splitlines() if "|" in line]
    named = {word for row in rows for code in re.findall("`([^`]+)`", row.split("|")[2]) for word in code.split(".")}
    names = {re.sub(r"\W.*", "", word) for word in named} - {"", "O", "j", "py", "models", "fidelity"}
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "models").rglob("*.py"))
    assert len(names) > 40
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", source)] == []
