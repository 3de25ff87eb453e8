"""Models that the HTTP APIs of several daemons share; their docstrings are OpenAPI's texts."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class HttpModel(BaseModel):
    """Base of the bodies of requests and replies."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Problem(HttpModel):
    """Reason for a refused request."""

    error: str = Field(examples=["NotFound"])
    """Class of the error, as listed in the documentation."""
    message: str = Field(examples=["job 99 does not exist; the newest is 12"])
    """Description of the error, with the value and the remedy."""
    line: int | None = None
    """Line in the statement or filter, from 1. This field and those below are absent if the
    error has no position in a text.
    """
    column: int | None = None
    expected: list[str] | None = None
    """Tokens that are allowed at that position."""
    incomplete: bool | None = None
    """True if the text is cut short, so that more text could make it valid."""


def refusals(descriptions: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return the responses of a route to refused requests, for OpenAPI.

    Parameters
    ----------
    descriptions : dict of int to str
        Statuses, and the reasons for each.
    """
    return {
        status: {"model": Problem, "description": text} for status, text in descriptions.items()
    }
