"""The tables of runs on the testbed. `logs` reads the journal of the testbed's driver.

`journal_tables` puts the journal into the terms of both engines. The other modules make one table each, or its columns.
"""
