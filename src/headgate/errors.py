"""The error tree: what can fail, the exit code, whether a retry helps; and counts with their nouns.

HeadgateError
├── OperationError         it ran and failed                                 (exit 1, no retry)
│   ├── BatchRefusedError  a batch does not join up with what is committed   (exit 1, no retry)
│   ├── RowRefusedError    a row does not fit its hash contract              (exit 1, no retry)
│   └── NotFoundError      nothing of that name is there                     (exit 1, no retry)
├── UsageError             the command was called wrongly                    (exit 2, no retry)
│   ├── PreconditionMissingError  a change does not say what it was made from (exit 2, no retry)
│   ├── TooLargeError      a request has more bytes than are taken           (exit 2, no retry)
│   ├── UnsupportedError   a request has a body of another kind              (exit 2, no retry)
│   ├── TooManyError       as many are open as are allowed                   (exit 2, retry later)
│   └── RequestTimeoutError  a request did not come in time                  (exit 2, retry)
├── DeclarationError       a manifest, rule set or filter is not valid       (exit 3, no retry)
├── SettingsError          a variable is missing or contradicts another      (exit 3, no retry)
├── DifferenceError        a check found a difference                        (exit 5, no retry)
├── ConflictError          someone else changed or holds it                  (exit 6, reload and retry)
│   ├── LeaseLostError     this engine or run is no longer the active one    (exit 6, no retry here)
│   ├── StaleError         it is no longer what the caller last saw          (exit 6, reload and retry)
│   ├── IllegalTransitionError  its status does not allow this               (exit 6, no retry)
│   └── DuplicateError     something of that name is there already           (exit 6, no retry)
├── ForbiddenError         not allowed                                       (exit 7, no retry)
│   └── UnauthenticatedError  nobody knows who is asking                     (exit 7, no retry)
├── UnavailableError       broker, catalog, engine or download is away       (exit 8, retry)
│   └── DriverLostError    the engine's JVM is gone, or answers no more      (exit 8, retry)
└── InterruptedByUserError stopped by a signal; what was begun can resume    (exit 130)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


def count_of(n: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2 rows`, `1,000 batches`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


@dataclass(frozen=True)
class Fault:
    """One thing wrong in a declared file: where it is, why it is wrong, what to write instead.

    `column` counts the characters of a condition's text from 1.
    """

    file: str
    line: int | None
    field: str
    what: str
    fix: str
    column: int | None = None

    def sentence(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        inside = f"at character {self.column}: " if self.column else ""
        return f"{place}: {self.field}: {inside}{self.what}. {self.fix}"


class HeadgateError(Exception):
    """The root: one line what, one why, one what to do."""

    code: str = "HG-1000"
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    @property
    def one_line(self) -> str:
        """All three, as the ops store keeps them."""
        return " | ".join(part for part in (self.what, self.why, self.fix) if part)


class OperationError(HeadgateError):
    """The operation ran and failed."""

    code = "HG-1001"


class BatchRefusedError(OperationError):
    """A batch neither follows nor repeats what its table has committed."""

    code = "HG-1002"


class RowRefusedError(OperationError):
    """A row lacks a field of its hash contract, or has a value of another type."""

    code = "HG-1005"


class NotFoundError(OperationError):
    """Nothing of that name is there."""

    code = "HG-1006"


class UsageError(HeadgateError):
    """The command was called wrongly."""

    code, exit_code = "HG-2001", 2


class PreconditionMissingError(UsageError):
    """A change must say which state it was made from."""

    code = "HG-2002"


class TooLargeError(UsageError):
    """The request is larger than the API takes."""

    code = "HG-2003"


class UnsupportedError(UsageError):
    """The request has a body of a kind that is not taken."""

    code = "HG-2005"


class TooManyError(UsageError):
    """The server has as many of these open as it allows."""

    code, retryable = "HG-2004", True


class RequestTimeoutError(UsageError):
    """The head or body of a request did not come in time."""

    code, retryable = "HG-2006", True


class DeclarationError(HeadgateError):
    """One or more faults in declared files, all of them at once."""

    code, exit_code = "HG-3001", 3

    def __init__(self, faults: Sequence[Fault]) -> None:
        count = "one fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(
            f"the declaration is not valid: {count}",
            why="\n".join(fault.sentence() for fault in faults),
        )
        self.faults = tuple(faults)


class SettingsError(HeadgateError):
    """A variable is missing, malformed or contradicts another."""

    code, exit_code = "HG-3002", 3


class DifferenceError(HeadgateError):
    """A check found a difference."""

    code, exit_code = "HG-5001", 5


class ConflictError(HeadgateError):
    """Someone else changed it or holds it: reload, then try again."""

    code, exit_code, retryable = "HG-6001", 6, True


class LeaseLostError(ConflictError):
    """This engine, or this run of a job, is no longer the active one."""

    code, retryable = "HG-6002", False


class StaleError(ConflictError):
    """It is no longer what the caller last saw: reload, then try again."""

    code = "HG-6005"


class IllegalTransitionError(ConflictError):
    """The status that it has does not allow this; `allowed` says what it does allow."""

    code, retryable = "HG-6006", False

    def __init__(
        self, what: str, *, allowed: Sequence[str] = (), why: str = "", fix: str = ""
    ) -> None:
        super().__init__(what, why=why, fix=fix)
        self.allowed = tuple(allowed)


class DuplicateError(ConflictError):
    """Something of that name is there already."""

    code, retryable = "HG-6007", False


class ForbiddenError(HeadgateError):
    """Not allowed."""

    code, exit_code = "HG-7001", 7


class UnauthenticatedError(ForbiddenError):
    """Nobody knows who is asking: no key or token, or one that does not hold."""

    code = "HG-7002"


class UnavailableError(HeadgateError):
    """Something needed is away; a retry may help."""

    code, exit_code, retryable = "HG-8001", 8, True


class DriverLostError(UnavailableError):
    """The engine's JVM is gone or answers no more; another engine goes on with the runs."""

    code = "HG-8003"


class InterruptedByUserError(HeadgateError):
    """Stopped by a signal; what was begun can be resumed."""

    code, exit_code, retryable = "HG-1300", 130, True
