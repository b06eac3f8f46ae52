"""`checkmate`: tables I to IV and figures 4, 5 and 7 to 13."""
