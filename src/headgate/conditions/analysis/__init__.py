"""Static analysis of conditions: never true, always true, the same, contained, unreachable."""
