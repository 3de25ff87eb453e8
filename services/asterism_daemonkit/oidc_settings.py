"""Settings of the tokens of callers, shared by the daemons and the embedded service."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, Field, model_validator

from asterism_access.authentication import Tokens
from asterism_proto.errors import InvalidRequest


class OidcSettings(BaseModel):
    """Settings of tokens of an OpenID Connect issuer."""

    token_issuer: str = ""
    """Issuer of tokens (OpenID Connect) that callers may send. Empty: tokens are not accepted."""
    token_audience: str = ""
    """Audience that tokens for this cluster have."""
    token_jwks: str = ""
    """File or URL of the keys of `token_issuer` (JWKS). Empty: found by the issuer's
    configuration."""
    token_name_claim: str = "sub"
    """Claim of a token with the name of the principal."""
    token_roles_claim: str = ""
    """Claim of a token with roles by space. Empty: roles come from grants only."""
    token_skew_s: float = Field(default=60.0, ge=0, le=600)
    """Seconds by which the clock of the issuer may differ."""

    @model_validator(mode="after")
    def _are_token_settings(self) -> Self:
        if self.token_issuer and not getattr(self, "cluster_key_file", ""):
            raise ValueError(
                f"token_issuer={self.token_issuer!r}: expected cluster_key_file with it"
            )
        if bool(self.token_issuer) != bool(self.token_audience):
            given, missing = ("token_issuer", "token_audience")
            if not self.token_issuer:
                given, missing = missing, given
            raise ValueError(f"{given}={getattr(self, given)!r}: expected {missing} with it")
        return self

    def tokens(self) -> Tokens | None:
        """Return the verifier of tokens; None if they are not accepted.

        Raises
        ------
        InvalidRequest
            If PyJWT is not installed, or a setting cannot be used.
        """
        if not self.token_issuer:
            return None
        # Only here: PyJWT is in an extra, as most clusters use no tokens.
        try:
            from asterism_access.credentials.oidc_tokens import TokenVerifier
        except ImportError as error:
            raise InvalidRequest(
                f"token_issuer={self.token_issuer!r}: expected PyJWT, which verifies tokens "
                f"({error}); run `pip install 'asterism-graph[oidc]'`, or build the image with "
                "the extra `oidc`"
            ) from error

        return TokenVerifier(self)
