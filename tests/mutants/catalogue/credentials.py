"""Faults of credentials (keys, tickets, tokens, their cache), and of ports without them.

Each names the test that must fail with it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

UNIT = "tests/unit/asterism_access"
NOT_REFUSED = "DID NOT RAISE"
API_KEYS = "asterism_access.credentials.api_keys"
TICKETS = "asterism_access.credentials.tickets"
CLUSTER_KEY = "asterism_access.credentials.cluster_key"
AUTHENTICATION = "asterism_access.authentication"
SESSIONS = "asterism_access.credentials.session_tokens"
BROWSER_REQUESTS = "asterism_daemonkit.http.browser_requests"
TOKENS = "asterism_access.credentials.oidc_tokens"
ISSUER_KEYS = "asterism_access.credentials.jwks"
EXPOSURE = "asterism_daemonkit.exposure"
EXPOSED = "tests/unit/asterism_daemonkit/test_exposure.py"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "key hashes compared byte by byte",
        "classic",
        API_KEYS,
        ("hmac.compare_digest(self.hash, secret_hash)", "self.hash == secret_hash"),
        test=f"{UNIT}/test_api_keys.py::test_hashes_are_compared_in_constant_time",
        reason="assert [] == [(",
    ),
    change(
        "ticket signatures compared by character",
        "classic",
        TICKETS,
        (
            "hmac.compare_digest(_signature(signed, key).encode(), signature.encode())",
            "_signature(signed, key) == signature",
        ),
        test=f"{UNIT}/test_tickets.py::test_signatures_are_compared_in_constant_time",
        reason="assert [] == [",
    ),
    change(
        "tickets with any signature",
        "classic",
        TICKETS,
        ("if not any(fits):", "if not fits:"),
        test=f"{UNIT}/test_tickets.py::test_any_of_several_keys_may_have_signed",
        reason=NOT_REFUSED,
    ),
    change(
        "tickets that never expire",
        "classic",
        TICKETS,
        ("if now_s > ticket.expires_s + SKEW_S:", "if now_s > math.inf:"),
        test=f"{UNIT}/test_tickets.py::test_a_ticket_is_accepted_until_its_expiry_and_a_skew",
        reason=NOT_REFUSED,
    ),
    change(
        "restrictions of later tickets ignored",
        "tempting",
        TICKETS,
        ("set(data) != _FIELDS", "not set(data) >= _FIELDS"),
        test=f"{UNIT}/test_tickets.py::test_fields_of_other_releases_are_refused",
        reason=NOT_REFUSED,
    ),
    change(
        "a key file that others can read",
        "classic",
        CLUSTER_KEY,
        ("if status.st_mode & _FORBIDDEN_MODE:", "if status.st_mode < 0:"),
        test=f"{UNIT}/test_cluster_key.py::test_a_file_that_others_can_use_is_refused",
        reason=NOT_REFUSED,
    ),
    change(
        "own tickets signed with a removed key",
        "tempting",
        CLUSTER_KEY,
        ("held is not None and held[2] == revision and", "held is not None and"),
        test=f"{UNIT}/test_cluster_key.py::test_keys_are_replaced_line_by_line_without_a_pause",
        reason=NOT_REFUSED,
    ),
    change(
        "API keys with any secret",
        "classic",
        AUTHENTICATION,
        ("if known is None or not matches:", "if known is None:"),
        test=(
            f"{UNIT}/test_authentication.py::test_an_unknown_key_and_a_wrong_secret_read_the_same"
        ),
        reason=NOT_REFUSED,
    ),
    change(
        "revoked API keys",
        "classic",
        AUTHENTICATION,
        ("if known.revoked_ms:", "if known.revoked_ms < 0:"),
        test=f"{UNIT}/test_authentication.py::test_a_cached_key_is_refused_once_it_is_revoked",
        reason=NOT_REFUSED,
    ),
    change(
        "credentials cached past their expiry",
        "classic",
        AUTHENTICATION,
        ("if cached is not None and self._clock() < cached.until_s:", "if cached is not None:"),
        test=f"{UNIT}/test_authentication.py::test_a_cached_key_is_refused_from_its_expiry_on",
        reason=NOT_REFUSED,
    ),
    change(
        "tickets cached past their key",
        "tempting",
        AUTHENTICATION,
        (
            "and key_revision == indexed.key_revision and (token_revision ==",
            "and (token_revision ==",
        ),
        test=f"{UNIT}/test_authentication.py::test_a_cached_ticket_is_refused_without_its_key",
        reason=NOT_REFUSED,
    ),
    change(
        "clients' tickets accepted by a graphd",
        "tempting",
        AUTHENTICATION,
        (
            "ticket.kind is TicketKind.CLIENT and (not self._accepts_client_tickets)",
            "ticket.kind is TicketKind.CLIENT and None",
        ),
        test=f"{UNIT}/test_authentication.py::test_a_clients_ticket_is_accepted_by_storageds_only",
        reason=NOT_REFUSED,
    ),
    change(
        "claimed roles in place of granted ones",
        "tempting",
        AUTHENTICATION,
        ("max(granted.get(space, role), more.get(space, role))", "more.get(space, role)"),
        test=f"{UNIT}/test_authentication.py::test_a_token_joins_claimed_and_granted_roles",
        reason="assert Principal(",
    ),
    change(
        "sessions with any signature",
        "classic",
        SESSIONS,
        ("if hmac.compare_digest(signature(signed, key).encode(), found.encode())", "if key"),
        test=f"{UNIT}/test_session_tokens.py::test_a_session_is_read_as_it_was_signed",
        reason=NOT_REFUSED,
    ),
    change(
        "changes with any token of a session",
        "classic",
        BROWSER_REQUESTS,
        (
            "if not hmac.compare_digest(token.encode('latin-1'), session.csrf_token.encode()):",
            "if not token:",
        ),
        test=(
            "tests/unit/asterism_daemonkit/test_browser_requests.py"
            "::test_a_change_with_a_session_needs_its_token"
        ),
        reason="string indices",
    ),
    change(
        "tokens with any named algorithm",
        "classic",
        TOKENS,
        (
            "if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:",
            "if not isinstance(algorithm, str):",
        ),
        test=f"{UNIT}/test_oidc_tokens.py::test_a_public_key_is_no_secret_of_hmac",
        reason="not alg='HS256'",
    ),
    change(
        "tokens with any signature",
        "classic",
        TOKENS,
        ("any((key.verify(signed, signature, algorithm) for key in keys))", "keys"),
        test=f"{UNIT}/test_oidc_tokens.py::test_a_key_in_the_header_is_not_used",
        reason=NOT_REFUSED,
    ),
    change(
        "tokens of other issuers",
        "classic",
        TOKENS,
        ("if issuer != self._settings.token_issuer:", "if not issuer:"),
        test=f"{UNIT}/test_oidc_tokens.py::test_other_claims_are_refused",
        reason=NOT_REFUSED,
    ),
    change(
        "audiences that contain ours",
        "tempting",
        TOKENS,
        (
            "audience if isinstance(audience, list) else [audience]",
            "audience or []",
        ),
        test=f"{UNIT}/test_oidc_tokens.py::test_other_claims_are_refused",
        reason=NOT_REFUSED,
    ),
    change(
        "tokens that never expire",
        "classic",
        TOKENS,
        ("if now >= expires_s + skew_s:", "if now >= _LATEST_S:"),
        test=f"{UNIT}/test_oidc_tokens.py::test_times_have_a_skew_of_a_minute",
        reason=NOT_REFUSED,
    ),
    change(
        "a second form of the same signature",
        "lagged",
        TOKENS,
        (
            "if not content or base64.urlsafe_b64encode(content).rstrip(b'=') != encoded:",
            "if not content:",
        ),
        test="tests/property/test_credentials.py::test_a_credential_with_a_flipped_bit_is_refused",
        reason=NOT_REFUSED,
    ),
    change(
        "any key of the issuer for an unknown key id",
        "tempting",
        ISSUER_KEYS,
        ("[key for key in fitting if key.key_id == key_id]", "fitting"),
        test=f"{UNIT}/test_jwks.py::test_an_id_names_the_keys_that_fit_the_algorithm",
        reason="== ['two']",
    ),
    change(
        "algorithms that a key is not for",
        "classic",
        ISSUER_KEYS,
        ("fitting &= {str(jwk['alg'])}", "fitting |= {str(jwk['alg'])}"),
        test=f"{UNIT}/test_jwks.py::test_other_keys_are_refused",
        reason=NOT_REFUSED,
    ),
    change(
        "keys fetched for every unknown key id",
        "tempting",
        ISSUER_KEYS,
        ("self._clock() - self._tried_s < _MIN_INTERVAL_S", "self._clock() < self._tried_s"),
        test=f"{UNIT}/test_jwks.py::test_keys_are_fetched_again_for_an_unknown_id",
        reason="assert ['two'] == []",
    ),
    change(
        "keys of an issuer with any certificate",
        "classic",
        ISSUER_KEYS,
        (
            "urllib.request.HTTPSHandler(context=context)",
            "urllib.request.HTTPSHandler(context=ssl._create_unverified_context())",
        ),
        test=f"{UNIT}/test_jwks.py::test_the_certificate_of_an_issuer_is_verified",
        reason=NOT_REFUSED,
    ),
    change(
        "a configuration of another issuer",
        "tempting",
        ISSUER_KEYS,
        ("if configuration.get('issuer') != self._issuer:", "if not configuration.get('issuer'):"),
        test=f"{UNIT}/test_jwks.py::test_an_unfitting_configuration_is_refused",
        reason=NOT_REFUSED,
    ),
    change(
        "exposed ports with TLS alone",
        "tempting",
        EXPOSURE,
        ("if not protection.cluster_key_file:", "if not protection.tls_cert:"),
        test=f"{EXPOSED}::test_one_of_both_is_not_enough",
        reason=NOT_REFUSED,
    ),
    change(
        "exposed ports after the first one",
        "classic",
        EXPOSURE,
        (
            "for name, address in (addresses.items() if missing else ())",
            "for name, address in (list(addresses.items())[:1] if missing else ())",
        ),
        test=f"{EXPOSED}::test_other_addresses_and_names_are_refused",
        reason=NOT_REFUSED,
    ),
    change(
        "names that are not found as loopback",
        "classic",
        EXPOSURE,
        ("return False", "return True"),
        test=f"{EXPOSED}::test_other_addresses_and_names_are_refused",
        reason="assert not True",
    ),
    change(
        "binary endpoints on wildcard addresses",
        "tempting",
        "storaged.settings",
        ("return f'{split_address(self.listen)[0]}{self.stream_listen}'", "return '0.0.0.0:0'"),
        test=f"{EXPOSED}::test_the_binary_endpoint_listens_where_grpc_does",
        reason="AssertionError",
    ),
    change(
        "reasons of readiness for every caller",
        "classic",
        "asterism_daemonkit.http.probes",
        ("if missing and withheld:", "if missing and not withheld:"),
        test="tests/unit/asterism_daemonkit/test_http_application.py"
        "::test_reasons_are_withheld_from_callers_without_rights",
        reason="AssertionError",
    ),
)
