"""Accounting: values and checks with which every capability proves that no record is lost.

`evidence` are the values (a check result, a table's rows and history, what a topic holds), `broker` asks a
topic for its offsets and counts records again, `table_history` compares a table's commits with the ledger.
A capability's own `accounting` gathers evidence with these and returns check results; `certify` collects them.
"""
