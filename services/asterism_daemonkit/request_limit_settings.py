"""Settings of request limits, shared by graphd, storaged and the embedded service."""

from __future__ import annotations

from pydantic import BaseModel, Field

from asterism_model.prices import MAX_ROWS_LIMIT, MEMORY_LIMIT_MIB, ROWS_LIMIT, STEPS_LIMIT, Limits


class RequestLimits(BaseModel):
    """Settings of the limits of one request."""

    request_rows_limit: int = Field(default=ROWS_LIMIT, ge=1, le=MAX_ROWS_LIMIT)
    """Rows that one request may sample, read or walk.

    A request that is certain to exceed the limit is refused before it runs."""
    request_memory_limit_mib: int = Field(default=MEMORY_LIMIT_MIB, ge=16)
    """MiB that the reply and the temporary arrays of one request may take together.

    A request that is certain to exceed the limit is refused before it runs."""
    request_steps_limit: int = Field(default=STEPS_LIMIT, ge=1)
    """Kernel steps (samples, edges examined) that one request may take.

    A request that may exceed the limit is refused before it runs."""

    @property
    def limits(self) -> Limits:
        """Limits of one request."""
        return Limits(
            rows=self.request_rows_limit,
            memory=self.request_memory_limit_mib << 20,
            steps=self.request_steps_limit,
        )
