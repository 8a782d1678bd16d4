"""Who sent a request, and whose things it may touch."""

from __future__ import annotations

import msgspec

from horae.errors import PermissionDeniedError

ADMIN = "admin"
SERVICE = "service"


class Caller(msgspec.Struct, frozen=True):
    """Who sent a request: a user, and the scopes that were given to him."""

    user: str
    scopes: frozenset[str] = frozenset()

    @property
    def sees_all(self) -> bool:
        """Whether everybody's things are shown to him."""
        return ADMIN in self.scopes

    @property
    def may_name_others(self) -> bool:
        """Whether he may act for another user by naming him."""
        return self.sees_all or SERVICE in self.scopes

    def owner_for(self, named: str | None) -> str | None:
        """Whose things an operation touches: the named user's, or else his own; ``None`` is everybody's."""
        if named is None:
            return None if self.sees_all else self.user
        self._check(named)
        return named

    def owner_of_new(self, named: str | None) -> str:
        """Who owns what he creates."""
        if named is None:
            return self.user
        self._check(named)
        return named

    def _check(self, named: str) -> None:
        if named != self.user and not self.may_name_others:
            raise PermissionDeniedError(
                "Only the scopes service and admin may name another user",
                hint="leave the owner out, and it is yourself",
            )
