"""Benchmarks of the speed goals: `headgate bench run` runs each in a process of its own."""
