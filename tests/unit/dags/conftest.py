"""Airflow reads its configuration when it is first imported: it is told before that what it runs for."""

import os

os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "True")
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
