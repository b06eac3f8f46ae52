"""A sink puts out nothing tentative of a batch whose exact output is out, and waits until it knows that."""

import pytest

from testbed.core.by_batch.publications import Publications
from testbed.core.effects import PublishTentative


@pytest.fixture
def effects():
    return []


@pytest.fixture
def publications(effects):
    return Publications(effects)


def tentative(*batches):
    return [PublishTentative(batch, ()) for batch in batches]


def put_out(publications, *batches):
    for each in tentative(*batches):
        publications.put_out(each)


def test_tentative_output_waits_while_the_sink_does_not_know_what_is_out(publications, effects):
    publications.ask()
    effects.clear()
    put_out(publications, 3, 4, 5)
    assert effects == []
    publications.on_published(5)  # the numbers of batches begin at 1
    assert effects == tentative(5)
    publications.on_published(5)
    put_out(publications, 4, 6)
    assert effects == tentative(5, 6)


def test_a_sink_that_does_not_ask_does_not_wait(publications, effects):
    put_out(publications, 3)
    assert effects == tentative(3)


def test_what_waits_belongs_to_a_life(publications, effects):
    publications.ask()
    put_out(publications, 3)
    publications.restore()
    effects.clear()
    publications.ask()
    publications.on_published(0)
    assert tentative(3)[0] not in effects
