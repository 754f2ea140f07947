"""Fault scenarios: parts of a running stack are killed; what is left must equal an undisturbed run or what was planted.

`scenario` runs any of them, `rig` has parts that may be killed, `comparison` compares a home with an undisturbed one.
The scenarios: `bronze` (kills at named points of a batch), `stream` (bursts), `filters`, `reconcile/`.
"""
