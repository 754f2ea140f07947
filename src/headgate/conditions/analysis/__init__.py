"""Static analysis of conditions: never true, always true, duplicate, contained, unreachable.

`terms` maps expressions to terms and the sets of values they can have; `two_valued` turns a condition
into formulas over terms, one for true and one for false; `formulas` brings them to disjunctive
normal form and decides implication; `findings` reports what is certain. Entry point:
`findings.analyse`.
"""
