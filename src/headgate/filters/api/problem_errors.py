"""A problem as the error that it was at the server, so that exit codes hold on both sides."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.errors import (
    DeclarationError,
    Fault,
    HeadgateError,
    IllegalTransitionError,
    OperationError,
    UnavailableError,
)
from headgate.web.models import Problem, ProblemFault

BODY = "the request"


def error_of(problem: Problem) -> HeadgateError:
    """The kind of its code; without one we know, by its status."""
    if problem.errors:
        return DeclarationError([_fault(fault) for fault in problem.errors])
    kind = next((kind for kind in _kinds(HeadgateError) if kind.code == problem.code), None)
    if kind is IllegalTransitionError:
        return IllegalTransitionError(problem.detail, allowed=problem.allowed, fix=problem.fix)
    if kind is None or problem.status >= 500:
        kind = UnavailableError if problem.status >= 500 else OperationError
    return kind(problem.detail, why=_traced(problem), fix=problem.fix)


def _traced(problem: Problem) -> str:
    return f"request {problem.request_id}" if problem.status >= 500 and problem.request_id else ""


def _fault(fault: ProblemFault) -> Fault:
    place = fault.pointer if fault.parameter is None else fault.parameter
    return Fault(BODY, None, place or "(whole)", fault.detail, fault.fix)


def _kinds(kind: type[HeadgateError]) -> Iterator[type[HeadgateError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == HeadgateError.__module__:
            yield from _kinds(below)
