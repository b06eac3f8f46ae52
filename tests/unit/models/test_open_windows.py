"""The expected number of open windows, against simulation, against the limit, and where it is exact."""

import numpy as np
import pytest

from experiments.errors import BadInput
from models.open_windows import open_windows


@pytest.mark.parametrize(("items", "size", "records"), [(2000, 10, 8000), (2000, 10, 21_000), (3000, 3, 2000)])
def test_as_many_as_are_open_after_random_records(items, size, records):
    random = np.random.default_rng(3)
    found = [np.count_nonzero(np.bincount(random.integers(0, items, records)) % size) for _ in range(30)]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - open_windows(items, size, records)) < 4 * error + 1


def test_in_the_long_run_all_items_but_one_of_size():
    assert open_windows(100_000, 10, 10**8) == pytest.approx(90_000)  # the paper's
    assert open_windows(2, 1000, 10**9) == pytest.approx(2 * 0.999)


def test_windows_of_one_record_are_never_open_and_at_first_none_is():
    assert open_windows(7, 1, 12_345) == pytest.approx(0)
    assert open_windows(7, 10, 0) == pytest.approx(0)


@pytest.mark.parametrize(("arguments", "field"), [((0, 1, 1), "items"), ((1, 0, 1), "size"), ((1, 1, -1), "records")])
def test_what_makes_no_sense_is_refused(arguments, field):
    with pytest.raises(BadInput, match=field):
        open_windows(*arguments)
