"""The fuzzers' own machinery: it counts what it fed, and notices what it is there to notice."""

from random import Random

import pytest
from hypothesis import strategies as st

from results.tables.schema import TABLES
from tests.fuzz import damaging
from tests.fuzz.mutation import mutated
from tests.fuzz.session import VARIABLE, Session, inputs_wanted
from tests.fuzz.temporary_home import temporary_home


def reader_with_a_hole(text):
    if "7" in text:
        raise RuntimeError("the hole")


def feed_numbers(session):
    texts = [str(random.randrange(1000)) for random in session.draws()]
    for text in texts:
        with session.feeding(text):
            reader_with_a_hole(text)
    return texts


def test_a_test_fails_at_the_first_wrong_answer_and_tells_its_input():
    session = Session(seed=1, inputs=100)
    with pytest.raises(RuntimeError, match="the hole") as told:
        feed_numbers(session)
    assert "7" in told.value.__notes__[0]


def test_a_night_notes_every_wrong_answer_and_goes_on():
    session = Session(seed=1, inputs=300, nightly=True)
    texts = feed_numbers(session)
    assert session.fed == 300
    assert session.failed == sum("7" in text for text in texts) > 0
    assert all("the hole" in failure for failure in session.failures)


def test_hypothesis_feeds_a_session_and_an_input_that_fails_is_made_small():
    session = Session(seed=1, inputs=200, nightly=True)
    session.hypothesis(st.text("0123456789", max_size=9), reader_with_a_hole)
    assert session.fed >= 200
    assert session.failed > 0
    with pytest.raises(RuntimeError) as told:
        Session(seed=1, inputs=200).hypothesis(st.text("0123456789", max_size=9), reader_with_a_hole)
    assert "the input: '7'" in told.value.__notes__


def test_a_seed_draws_the_same_inputs_again_and_another_one_draws_others():
    def drawn(seed):
        return [mutated(random, [b"a: 1\nb: [2]\n"]) for random in Session(seed, 50).draws()]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    assert len(set(drawn(1))) > 40


def test_every_change_of_a_document_can_be_made_to_an_empty_one():
    for number in range(500):
        assert isinstance(mutated(Random(number), [b""]), bytes)


def test_the_environment_sets_the_number_of_inputs(monkeypatch):
    monkeypatch.setenv(VARIABLE, "123")
    assert inputs_wanted() == 123
    assert inputs_wanted(weight=0.5) == 62
    assert inputs_wanted(weight=0.001) == 1


def test_the_run_that_is_damaged_has_every_table_and_each_fits_its_schema():
    """A table that is added is damaged, too."""
    with temporary_home():
        victim = damaging.make_store().victim
        assert [name for name in TABLES if len(victim.table(name)) == 0] == []
