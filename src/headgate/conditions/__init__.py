"""The closed condition language of rules, filters and silver columns: parse, type, analyse, render, run.

`grammar` and `parser` turn SQL text into the tree of `ast`; `builder` makes every node and checks its
types, with `type_coercion` and the table of `functions`; what is not listed is refused.
From the tree: `spark_sql` (with `literals`) renders Spark SQL that cannot raise on any row, `describe`
says the condition in English, `evaluator` runs it in Python exactly as Spark would, `analysis`
finds conditions that never match or contain each other. `regex` accepts only patterns whose cost is
bounded.
Entry points: `parser.parse_condition`, `spark_sql.to_spark`, `evaluator.evaluate.evaluate`,
`analysis.findings.analyse`.
"""
