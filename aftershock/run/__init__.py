"""The steps of a run, in order (`steps`), and what they use.

`live_run` is the run that the steps work on; `run_journals` follows its journals. `engines` submit its query and say
how far it has come; `batch_job` and `sustainable` do the work of single steps. `derive` computes the results from the
raw logs. `ending` ends the run, also after a failure, and `abort` by hand; `lease` tells whether anybody still works on
it.
"""
