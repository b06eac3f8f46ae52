"""The batch job of a run: `job.py RESULT_DIRECTORY ORDERS`, both of its stages in one Spark session.

It carries out what is ordered (`spark_jobs.tables.orders`) until the tables are built. `archive` needs the run's
broker; `build` works on what that has saved.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from experiments.errors import AftershockError
from experiments.spec import Experiment
from infra.broker import Broker
from results.runs.store import Run
from spark_jobs.tables.archive import archive
from spark_jobs.tables.bad_messages import bad_message
from spark_jobs.tables.build import build, logs_of
from spark_jobs.tables.orders import Orders

ORDER_LIMIT_S = 900.0


def _archive(spark: SparkSession, result: Path, *broker: str) -> None:
    run = Run(result.parent.name, result)
    experiment = Experiment.model_validate_json(run.experiment_path.read_text(encoding="utf-8"))
    archive(spark, run.raw, Broker(*broker), experiment.workload, experiment.engine, experiment.load)


def _build(spark: SparkSession, result: Path) -> None:
    build(logs_of(spark, result))


STAGES: dict[str, Callable[..., None]] = {"archive": _archive, "build": _build}
LAST = "build"


def main() -> None:
    """Carry out the orders that come in the folder `argv[2]` on the result `argv[1]`, until the last stage is done.

    Exits with one line for an `AftershockError`, for a message that can't be used, and if no order comes for
    `ORDER_LIMIT_S`.
    """
    result, orders = Path(sys.argv[1]), Orders(Path(sys.argv[2]))
    spark = SparkSession.builder.appName("aftershock-tables").getOrCreate()
    try:
        while not orders.finished(LAST):
            stage, arguments = orders.take(ORDER_LIMIT_S)
            STAGES[stage](spark, result, *arguments)
            orders.finish(stage)
    except (AftershockError, TimeoutError) as error:
        sys.exit(f"Error: {error}")  # the code that reads this log looks for a line that names an error
    except (PySparkException, Py4JJavaError) as error:
        told = bad_message(str(error))
        if told is None:
            raise
        traceback.print_exc()
        sys.exit(f"Error: {told}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
