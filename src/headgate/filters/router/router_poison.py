"""Who makes a batch fail: the set is halved until single filters are left, over the same records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headgate.core.engine.engine_stream import explain
from headgate.core.kafka.expiry import is_data_loss
from headgate.errors import HeadgateError, OperationError
from headgate.filters.store.routing_model import Member

# What a filter's fault looks like must be seen so often before it is taken for one.
TRIES = 2
Fails = Callable[[Sequence[Member]], str]


class PoisonedFilterError(OperationError):
    """A filter raises, or its topic cannot be written; trying again does not help."""

    code = "HG-1007"


def culprits(members: Sequence[Member], fails: Fails) -> dict[str, str]:
    """The filters that fail, each with the words of its failure; `fails` is empty where all is well."""
    words = fails(members) if members else ""
    if not words:
        return {}
    if len(members) == 1:
        return {members[0].filter: words}
    half = len(members) // 2
    return culprits(members[:half], fails) | culprits(members[half:], fails)


def refuse_unless_ours(error: Exception) -> None:
    """Raise what is no filter's fault: something away, records gone, or an error of our own."""
    if isinstance(error, HeadgateError) or is_data_loss(error):
        raise error
    explained = explain(error)
    if explained.retryable:
        raise explained from error


def words_of(error: Exception) -> str:
    """The failure in one line."""
    return explain(error).one_line
