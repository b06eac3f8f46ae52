"""`checkmate`: tables I to IV and figures 4, 5 and 7 to 13."""

from reproductions.checkmate import checkpoints, cycle, features, messages, recoveries, rollback, skew, throughput

PARTS = (features, rollback, throughput, messages, checkpoints, recoveries, skew, cycle)
REPRODUCTIONS = tuple(found for part in PARTS for found in part.REPRODUCTIONS)
