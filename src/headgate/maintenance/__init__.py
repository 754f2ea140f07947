"""Table maintenance: compact small files, expire snapshots, remove orphan files.

Walk: selection (pure: what may go, what is worth rewriting; defaults) → table (facts and Iceberg's
procedures) → plan (values) → planner (facts judged into a plan) → job (do the plan and no more) → cli.
Entry points: `job.run_maintain` (job kind), `job.maintained`, the command `headgate maintain`.
Invariant: what a job still needs of a table (markers, reader positions, open batches) stays.
"""
