"""`checkmate`: tables I to IV and figures 4, 5 and 7 to 13."""

from reproductions.checkmate import checkpoints, features, messages, recoveries, rollback

REPRODUCTIONS = tuple(
    found for part in (features, rollback, messages, checkpoints, recoveries) for found in part.REPRODUCTIONS
)
