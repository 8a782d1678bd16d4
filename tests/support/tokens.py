"""Tokens of users, and the secret that signs them."""

from __future__ import annotations

import jwt

SECRET = "correct horse battery staple, twice"  # noqa: S105 - it guards nothing


def bearer(user: str, *scopes: str, expires: int = 4_000_000_000, secret: str = SECRET) -> dict[str, str]:
    """The header of a request by a user."""
    claims = {"sub": user, "aud": "horae", "exp": expires, "scope": " ".join(scopes)}
    return {"Authorization": f"Bearer {jwt.encode(claims, secret)}"}
