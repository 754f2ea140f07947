"""Base classes of the API's request and response models, and the models of a problem (RFC 9457).

Pydantic only, so that the Python client of the API loads no FastAPI. Responses may gain fields; a request with an
unknown field is refused.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, field_validator
from pydantic.alias_generators import to_camel

from headgate.declarations.errors import HALF


class Answered(BaseModel):
    """Answers may get more fields; a client takes what it knows."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True, frozen=True
    )


class Asked(BaseModel):
    """What is asked may not: a field that nobody reads was meant to do something."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True
    )


class _Told(Answered):
    """Names what was sent, of which half a character cannot be written."""

    @field_validator("*", mode="before")
    @classmethod
    def _whole(cls, value: object) -> object:
        return HALF.sub("?", value) if isinstance(value, str) else value


class ProblemFault(_Told):
    """One fault: `pointer` leads into the body, `parameter` names what stands elsewhere."""

    detail: str
    pointer: str | None = None
    parameter: str | None = None
    fix: str = ""


class Problem(_Told):
    """A problem as RFC 9457 has it, with our code and what to do."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    fix: str = ""
    request_id: str = ""
    errors: list[ProblemFault] = []
    allowed: list[str] = []
