"""The papers' tables and figures, computed again: a table, a plot and a verdict each.

    from reproductions.catalogue import CATALOGUE      {id: Reproduction(id, what, kind, ...)}, imported when taken
    from reproductions.reproduce import reproduce      reproduce(id, out=None, size=None) -> Reproduced

May import `models`, `results` and `experiments`, and the testbed's protocols and their simulation for a table of what
they do and for rows beyond the machine; knows nothing of Airflow, clusters or the command line.
"""
