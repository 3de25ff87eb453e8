"""The settings of request limits, which graphd, storaged and the embedded service share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from asterism_model.prices import MAX_ROWS_LIMIT, MEMORY_LIMIT_MIB, ROWS_LIMIT, STEPS_LIMIT, Limits


class RequestLimits(BaseModel):
    """Limits of one request."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    request_rows_limit: int = Field(default=ROWS_LIMIT, ge=1, le=MAX_ROWS_LIMIT)
    """Rows that one request may draw, read or walk; one that is certain to take more is refused
    before it runs.
    """
    request_memory_limit_mib: int = Field(default=MEMORY_LIMIT_MIB, ge=16)
    """MiB that the reply and the temporary arrays of one request may take together; one that is
    certain to take more is refused before it runs.
    """
    request_steps_limit: int = Field(default=STEPS_LIMIT, ge=1)
    """Steps of kernels (draws, edges looked at) that one request may take; one that may take more
    is refused before it runs.
    """

    @property
    def limits(self) -> Limits:
        """The limits of one request."""
        return Limits(
            rows=self.request_rows_limit,
            memory=self.request_memory_limit_mib << 20,
            steps=self.request_steps_limit,
        )
