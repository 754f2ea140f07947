"""Benchmarks, fault plays and their command line: `python -m bench` in the root of the repository."""
