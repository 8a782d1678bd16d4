"""Actions of a service whose version can be chosen: with ``NEWER`` it knows a schema that is one step ahead of this tree's."""

import os

from horae.store.postgres import PostgresStore
from tests.face.service.actions import app

__all__ = ["app"]

if "NEWER" in os.environ:
    PostgresStore.schema_steps = (
        *PostgresStore.schema_steps,
        "ALTER TABLE schedule ADD COLUMN colour TEXT;\n",
    )
