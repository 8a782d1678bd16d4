"""Why a PostgreSQL server cannot be reached, in words for its operator."""

from __future__ import annotations

import re
import socket

import asyncpg

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that ended just as the pool gave it out
    asyncpg.CannotConnectNowError,
    asyncpg.InvalidCatalogNameError,  # there is no such database
    asyncpg.InvalidAuthorizationSpecificationError,  # no such role, or another password
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InsufficientResourcesError,  # a full disk, no memory
    asyncpg.DeadlockDetectedError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, in the middle of a failover
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.SerializationError,
    asyncpg.QueryCanceledError,
    OSError,
    TimeoutError,
)
"""What a driver raises when the database cannot be reached."""
_REFUSED = re.compile(r"Connect call failed \('([^']*)', (\d+)")


def connection_reason(error: Exception) -> str:
    """Explain an error of the driver or the network in words, because drivers report exception names and numbers."""
    if places := _REFUSED.findall(str(error)):
        return f"nothing answers at {' or '.join(f'{host}:{port}' for host, port in places)}"
    if isinstance(error, socket.gaierror):
        return "the name of its host is not known"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return str(error) or "the connection was lost"
