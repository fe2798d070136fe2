"""Signed, short-lived tickets: what one part of a server allows, another part can check without a session.

A ticket says who may fetch what, and until when, under a key that never leaves the server. It is not a secret about its
content, which anyone can read; it cannot be made or changed without the key.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping

_LIMIT = 4096


class TicketError(ValueError):
    """A ticket that does not allow anything: forged, cut, or expired. `expired` tells the last from the others."""

    def __init__(self, message: str, *, expired: bool = False) -> None:
        """Keep the reason."""
        super().__init__(message)
        self.expired = expired


def issue(key: bytes, claims: Mapping[str, str], *, expires_s: int) -> str:
    """A ticket for `claims`, valid until the Unix time `expires_s`."""
    body = json.dumps([expires_s, dict(claims)], sort_keys=True, separators=(",", ":")).encode()
    return f"{base64.urlsafe_b64encode(body).decode().rstrip('=')}.{_signature(key, body)}"


def redeem(key: bytes, ticket: str, *, now_s: float) -> dict[str, str]:
    """The claims of a valid ticket; TicketError for any other. The signature is judged before the content is read."""
    encoded, _, signature = ticket.partition(".")
    if len(ticket) > _LIMIT:
        raise TicketError("the ticket is too long")
    try:
        body = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        raise TicketError("the ticket is not readable") from None
    if not hmac.compare_digest(_signature(key, body).encode(), signature.encode()):
        raise TicketError("the ticket's signature is wrong")
    expires_s, claims = json.loads(body)
    if now_s >= expires_s:
        raise TicketError("the ticket has expired", expired=True)
    return {str(name): str(value) for name, value in claims.items()}


def _signature(key: bytes, body: bytes) -> str:
    return hmac.new(key, body, hashlib.sha256).hexdigest()
