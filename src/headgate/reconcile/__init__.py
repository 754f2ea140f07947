"""Two sources → states and verdicts as SQL, and the same as pure functions."""
