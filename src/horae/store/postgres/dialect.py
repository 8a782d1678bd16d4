"""The SQL of PostgreSQL, where it differs."""

from __future__ import annotations

from horae.store.queries import Dialect, numbered

POSTGRES = Dialect(
    "postgres",
    {
        "among": "= ANY (:{0}::{1}[])",
        "elements": "unnest(:{0}::{1}[]) AS elements (value)",
        "bytes": "octet_length({0})",
        "position": "strpos",
        "json": "readable_json({0})",
        "has": "readable_json({0})::jsonb ? :{1}",
        "index": "",
        "share_lock": "FOR SHARE",
        "update_lock": "FOR UPDATE",
        "skip_locked": "FOR UPDATE SKIP LOCKED",
        "also_new": "{new},",
        "elements_as": "unnest(:{0}::{1}[]) AS {0} (value)",
        "new_rows": "{new}",
        "from_new": "FROM {new}",
        # An array instead of a join, which would scan the whole table if the server thinks it small.
        "delete_each": "DELETE FROM {0} WHERE {1} = ANY (ARRAY (SELECT old.{1} FROM {new} CROSS JOIN LATERAL",
        "deleted": "AS old))",
        "new_value": "new.{0}",
        "number_column": "",
        "number_sequence": "CREATE SEQUENCE horae_number;",
        "identity": "BIGINT GENERATED ALWAYS AS IDENTITY",
        "clustered": "",
        "updated_often": "WITH (fillfactor = 70)",
        "lease_column": ",\n    deadline TIMESTAMPTZ NOT NULL",
        "json_function": (
            "\n-- A text as JSON; NULL if it is none, so that a row that was spoiled by hand spoils no list.\n"
            "CREATE FUNCTION readable_json(given TEXT) RETURNS JSON LANGUAGE plpgsql IMMUTABLE STRICT AS\n"
            "'BEGIN RETURN given::json; EXCEPTION WHEN OTHERS THEN RETURN NULL; END';"
        ),
    },
)


def prepared(name: str) -> tuple[str, tuple[str, ...]]:
    """The text of a statement with numbered parameters, and their names in that order."""
    return numbered(POSTGRES, name, "$")
