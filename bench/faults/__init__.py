"""Fault plays: parts of a running stack are killed; what is left must equal an undisturbed run or what was planted.

`rig` is a broker, homes and engines that may be killed, `comparison` compares a home with an undisturbed one.
The plays: `bronze` (kills at named points of a batch), `stream` (bursts), `filters`, `reconcile/`.
"""
