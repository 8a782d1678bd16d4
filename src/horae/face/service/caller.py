"""The caller of a request, and the owners that they may act for."""

from __future__ import annotations

import msgspec

from horae.errors import PermissionDeniedError

ADMIN = "admin"
SERVICE = "service"
READ = "read"


class Caller(msgspec.Struct, frozen=True):
    """The caller of a request: a user, and the scopes granted to them."""

    user: str
    scopes: frozenset[str] = frozenset()

    @property
    def sees_all(self) -> bool:
        """Whether the caller sees what all owners have."""
        return ADMIN in self.scopes

    @property
    def may_name_others(self) -> bool:
        """Whether the caller may act for another user by naming them."""
        return self.sees_all or SERVICE in self.scopes

    def check_change(self) -> None:
        """Refuse a change to a caller who may only read, whatever their other scopes are."""
        if READ in self.scopes:
            raise PermissionDeniedError(
                "A token with the scope read may look at everything that its user sees, and change nothing",
                hint="use a token without that scope",
            )

    def owner_for(self, named: str | None) -> str | None:
        """The owner that an operation is limited to: the named user, or else the caller; ``None`` means all owners."""
        if named is None:
            return None if self.sees_all else self.user
        self._check(named)
        return named

    def owner_of_new(self, named: str | None) -> str:
        """The owner of what the caller creates."""
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
        if not named and not self.sees_all:
            raise PermissionDeniedError(
                "Only the scope admin may name what has no owner",
                hint="leave the owner out, and it is yourself",
            )
