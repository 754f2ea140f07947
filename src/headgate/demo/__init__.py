"""The four demos of `headgate demo` and the data they plant, which `headgate feed` sends.

Each plants a known number of defects, runs the product's own commands as steps in a home of its own, and
compares every count with what was planted. `own_home` isolates home and settings, `steps` are the steps of the
pipeline and the base of the others, `cli` is `headgate demo`; then one folder a demo: `quality`, `reconcile`,
`filters`. In each: what is planted → `feed` (the command that sends it) → comparison with what was found → `cli`.
Benchmarks and fault plays outside of the package import it; nothing inside the package does but `headgate.app`.
"""
