"""The page of claims has every row of the catalogue, and says of none more than its published checks do.

A row that leaves something open says what would decide it; one that disagrees, whose disagreement that is.
"""

import re
from pathlib import Path

import pytest

from reproductions.ids import IDS
from results.views import gallery

ROOT = Path(__file__).parents[3]
LAB = ROOT / "docs" / "lab"
PAGE = (LAB / "claims.md").read_text(encoding="utf-8")
WORDS = ("agrees", "agree", "disagrees", "undecided", "not measured", "partly measured")
LIMITED = re.compile(r"disagree|undecided|except|needs a limit|not measured|in part")
FIGURES = sorted(f"{path.parent.name}/{path.name}" for path in (ROOT / "published" / "reproductions").glob("*/*"))
COUNT = r"\d[\d,]*(?: more)? (?:pairs|runs|searches|checkpoints)|[Nn]o number of \w+"
DECIDING = re.compile(rf"(?:{COUNT})\b[^.;]*\bdecides?\b")
DURATION = re.compile(r"\d+ (?:min|h)\b")
WHOSE = re.compile(r"\bOurs\b|\bthis is ours\b|\ba slip of the paper\b|\bthis project's own\b")
SENTENCE_END = re.compile(r"(?<=\.)\s+(?=[A-Z\"*\[])")


def rows(page):
    """What stands in the first and in the last column of each row of a table of claims: ids, and a verdict."""
    return re.findall(r"^\| (\[?`[^|]+) \|(?:[^|]*\|){2} ([^|]+) \|$", page, re.MULTILINE)


def verdicts(page):
    """By id, the verdicts of the rows that name it."""
    found = {}
    for ids, verdict in rows(page):
        for id in re.findall(r"`([^`]+)`", ids):
            found.setdefault(id, []).append(verdict)
    return found


def undecidable(verdict):
    """Whether something is undecided, and what follows does not say how many runs would decide, or that none can."""
    return any(not DECIDING.search(told) for told in verdict.split("undecided")[1:])


def unplanned(verdict):
    """Whether something is not measured, and how long that takes is not said."""
    return bool(re.search("(not|partly) measured", verdict, re.IGNORECASE)) and not DURATION.search(verdict)


def nobodys(verdict):
    """Whether something disagrees, and neither this sentence nor the next one says whose disagreement it is."""
    sentences = SENTENCE_END.split(verdict)
    pairs = zip(sentences, [*sentences[1:], ""], strict=True)
    return any("disagree" in one and not WHOSE.search(f"{one} {next_one}") for one, next_one in pairs)


def address(id):
    """The published plot of a table or figure, as the page links it."""
    return f"../../published/reproductions/{id}/{id.replace('/', '-')}.svg"


def unlinked(page, id):
    """The rows that name an id, and do not link it to its published plot."""
    link = f"[`{id}`]({address(id)})"
    return [ids for ids, _ in rows(page) if f"`{id}`" in ids and link not in ids]


def without_plot(page, folder):
    """The links of ids that lead to no file; `folder` is that of the page."""
    links = [link for ids, _ in rows(page) for link in re.findall(r"\]\(([^)]+)\)", ids)]
    return [link for link in links if not (folder / link).is_file()]


def unlimited(page, id, published):
    """Whether the page says without a limit that a figure agrees of whose published checks not all passed."""
    return published != "pass" and not any(LIMITED.search(verdict) for verdict in verdicts(page)[id])


def refuted(page, id, published):
    """Whether the page says that a figure disagrees whose published checks, with these verdicts, are all unknown."""
    told = any("disagree" in verdict and "undecided" not in verdict for verdict in verdicts(page)[id])
    return told and set(published) == {"unknown"}


def test_every_row_of_the_catalogue_has_a_verdict():
    told = verdicts(PAGE)
    assert set(IDS) - set(told) == set()
    assert all(any(word in verdict for word in WORDS) for found in told.values() for verdict in found)


@pytest.mark.parametrize("id", FIGURES)
def test_the_page_says_no_more_than_the_published_checks(id, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(ROOT / "published"))
    published = gallery.published_reproduction(id)
    assert not unlimited(PAGE, id, published.verdict)
    assert not refuted(PAGE, id, [row.verdict for row in published.verdicts])


def test_a_verdict_that_says_too_much_is_noticed():
    page = "| `a/1` | claims | found | agrees |\n| `a/2` | claims | found | agrees, except for one: a slip |\n"
    assert unlimited(page, "a/1", "fail")
    assert not unlimited(page, "a/1", "pass")
    assert not unlimited(page, "a/2", "fail")


def test_a_disagreement_that_no_check_has_found_is_noticed():
    page = "| `a/1` | claims | found | disagrees with the size |\n| `a/2` | claims | found | undecided |\n"
    assert refuted(page, "a/1", ["unknown", "unknown"])
    assert not refuted(page, "a/1", ["unknown", "fail"])
    assert not refuted(page, "a/2", ["unknown"])


@pytest.mark.parametrize("unsaid", [undecidable, unplanned, nobodys])
def test_what_is_open_says_what_decides_it_and_what_disagrees_whose_it_is(unsaid):
    assert [ids for ids, verdict in rows(PAGE) if unsaid(verdict)] == []


@pytest.mark.parametrize(
    ("unsaid", "told", "lacking"),
    [
        (undecidable, "undecided, .97 times (.5 to 1.7): about 230 pairs instead of 3 would decide", "about 230 "),
        (undecidable, "undecided: 4 more runs (`--size 2`, 12 min) would decide or tell how many do", "4 more "),
        (undecidable, "undecided: no number of runs decides it", "no number of "),
        (undecidable, "order: undecided; 3 runs would decide. Size: undecided; 5 runs would decide", " 5 runs"),
        (unplanned, "not measured: 9 searches, 56 min", ", 56 min"),
        (nobodys, "disagrees. Ours: the queries differ", " Ours:"),
        (nobodys, "disagrees. Ours: the paper's queries differ, and the log of the paper was not used", " Ours:"),
        (nobodys, "agrees, but .5 disagrees: a slip of the paper. Its own eq. 10 gives .4", "a slip of "),
        (nobodys, "the size disagrees. Ours: frames. Q1 agrees. Q2 disagrees. Ours: few keys", " Ours: few"),
    ],
)
def test_an_open_row_without_its_number_is_noticed(unsaid, told, lacking):
    assert lacking in told
    for verdict, expected in ((told, False), (told.replace(lacking, ""), True)):
        ((_, found),) = rows(f"| `a/1` | claims | found | {verdict} |\n")
        assert unsaid(found) == expected


@pytest.mark.parametrize(
    "verdict",
    [
        "disagrees with the size of the paper",
        "disagrees. The paper's log was not used",
        "the size disagrees. It is .5 here. It was measured twice. Ours: the queries differ",
        "Ours: the queries differ. They are short. The size disagrees",
    ],
)
def test_the_word_paper_and_a_word_elsewhere_do_not_say_whose_a_disagreement_is(verdict):
    assert nobodys(verdict)


def test_every_published_plot_is_linked_and_every_link_has_a_plot():
    plotted = [id for id in FIGURES if (LAB / address(id)).is_file()]
    assert plotted
    assert [id for id in plotted if unlinked(PAGE, id)] == []
    assert without_plot(PAGE, LAB) == []


def test_a_plot_without_link_and_a_link_without_plot_are_noticed(tmp_path):
    linked, plain = f"[`a/1`]({address('a/1')})", "`a/1`"
    page = "".join(f"| {ids}, `a/2` | claims | found | agrees |\n" for ids in (linked, plain))
    assert unlinked(page, "a/1") == ["`a/1`, `a/2`"]
    assert without_plot(page, tmp_path / "docs" / "lab") == [address("a/1")]


def test_simulated_results_of_many_workers_are_told_to_be_uncalibrated():
    told = [line for line in PAGE.splitlines() if re.match(r"\| \[?`checkmate", line) and "imulated" in line]
    assert len(told) >= 5
    assert [line for line in told if "[not calibrated](#simulated-workers)" not in line] == []
