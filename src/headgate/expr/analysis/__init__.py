"""Static analysis of conditions: never true, always true, the same, contained, unreachable."""

from headgate.expr.analysis.findings import Finding, Kind, Named, analyse

__all__ = ["Finding", "Kind", "Named", "analyse"]
