"""The model of passive replication: values by hand, and that no restore is predicted from itself."""

import pytest

from experiments.errors import BadInput
from models.passive_restore import MeasuredRestore, predicted_s, restore_s


def restore(age_s, size_bytes=2e6, read_rate=1e7, rate=1000.0, service_rate=5000.0, slower=1.0):
    """A restore that goes as the model says, or `slower` than that by a factor."""
    due, load_s = age_s * rate, size_bytes / read_rate
    return MeasuredRestore(size_bytes, load_s * slower, due, due / service_rate * slower, due)


def test_both_terms_by_hand():
    """10 MB at 5 MB/s, and 4 s of 3,000 records/s at 6,000 records/s."""
    assert restore_s(10e6, 5e6, 4 * 3000, 6000) == 2 + 2


@pytest.mark.parametrize(("read_rate", "service_rate", "field"), [(0, 1, "read_rate"), (1, 0, "service_rate")])
def test_a_rate_of_nothing_is_refused(read_rate, service_rate, field):
    with pytest.raises(BadInput, match="above 0") as mistake:
        restore_s(1, read_rate, 1, service_rate)
    assert mistake.value.field == field


def test_restores_that_follow_the_model_are_predicted_whatever_their_ages():
    seen = [restore(1), restore(4, size_bytes=8e6), restore(9)]
    assert predicted_s(seen) == pytest.approx([each.measured_s for each in seen])


def test_a_restore_is_predicted_from_the_others_alone():
    alike, slow = [restore(3), restore(5), restore(7)], restore(5, slower=10)
    assert predicted_s([*alike, slow])[-1] == pytest.approx(restore(5).measured_s), "not from its own slowness"


def test_two_restores_do_not_tell_enough():
    with pytest.raises(BadInput, match="3 or more"):
        predicted_s([restore(1), restore(2)])
