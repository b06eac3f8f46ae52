"""What a query's driver measured, as the steps of a run read it; programs of the run may have written the file."""

import json

import pytest

from aftershock.run.engines.engine import read_calibration
from experiments.errors import EnvironmentFailure
from spark_jobs.calibration import Calibration

MEASURED = {"service_rate": 900.0, "overhead_s": 0.5, "load_rate": 1100.0}


def test_both_engines_tell_the_same_figures(tmp_path):
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(MEASURED))
    assert read_calibration(path) == Calibration(900.0, 0.5, 1100.0)
    path.write_text(json.dumps(MEASURED | {"batch_records": 70}))
    assert read_calibration(path) == Calibration(900.0, 0.5, 1100.0, 70)


@pytest.mark.parametrize("damage", [{"load_rate": "1e99"}, {"overhead_s": None}, {"load": 1.0}])
def test_a_file_with_other_fields_is_told_in_one_line(tmp_path, damage):
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(MEASURED | damage))
    with pytest.raises(EnvironmentFailure, match=r"^calibration\.json is damaged \(.*\); see query\.log of the run$"):
        read_calibration(path)
