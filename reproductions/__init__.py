"""The papers' tables and figures, computed again or measured: a table, a plot and a verdict each.

from reproductions.catalogue import CATALOGUE      {id: Reproduction(id, what, kind, ...)}, imported when taken
from reproductions.reproduce import reproduce      reproduce(id, out=None, size=None) -> Reproduced

Each paper has a folder by its name; `ids` lists what there is.
"""
