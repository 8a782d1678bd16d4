"""The SQL of PostgreSQL, where it differs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from horae.store.dialect import Dialect, number_parameters, query
from horae.store.tables import KINDS

PUBLISH = """

-- Publish an event of a flow in the caller's own transaction; the same message id again updates a pending event.
CREATE FUNCTION flow_publish(p_owner TEXT, p_flow TEXT, p_topic TEXT, p_message_id TEXT, p_payload JSON) RETURNS VOID
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    found flow;
BEGIN
    SELECT * INTO found FROM flow WHERE owner = p_owner AND name = p_flow;
    IF found.flow_id IS NULL THEN
        RAISE EXCEPTION 'there is no flow "%"', p_flow;
    END IF;
    IF NOT EXISTS (
        SELECT 1 FROM jsonb_array_elements(found.definition::jsonb -> 'handlers') AS handler
        WHERE handler -> 'subscribes' ? p_topic
    ) THEN
        RAISE EXCEPTION 'no consumer subscribes to the topic "%" of the flow "%"', p_topic, p_flow;
    END IF;
    IF length(p_message_id) NOT BETWEEN 1 AND 200 THEN
        RAISE EXCEPTION 'a message id has 1 to 200 characters';
    END IF;
    IF octet_length(p_payload::text) > 262144 THEN
        RAISE EXCEPTION 'the payload has more than 262144 bytes';
    END IF;
    INSERT INTO flow_event (flow_id, topic, message_id, payload, status, caused, created_at_ms)
    VALUES (found.flow_id, p_topic, p_message_id, coalesce(p_payload::text, 'null'), 'pending', FALSE,
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    ON CONFLICT (flow_id, topic, message_id) DO UPDATE SET payload = excluded.payload WHERE flow_event.status = 'pending';
    INSERT INTO flow_signal (flow_id, topic) VALUES (found.flow_id, p_topic);
    PERFORM pg_notify(current_schema(), 'flows:');
END
$$;""".replace(";\n", "; \n")  # a semicolon at the end of a line ends a statement of a migration
"""The function that applications call in their own transactions."""

POSTGRES = Dialect(
    "postgres",
    {
        # Lists go as texts: the driver would look up the type of every other list, in each new connection.
        "among": "= ANY (:{0}::text[]::{1}[])",
        "elements": "unnest(:{0}::text[]::{1}[]) AS elements (value)",
        "bytes": "octet_length({0})",
        "position": "strpos",
        "json": "readable_json({0})",
        "has": "readable_json({0})::jsonb ? :{1}",
        "index": "",
        "share_lock": "FOR SHARE OF {0}",
        "update_lock": "FOR UPDATE",
        "skip_locked": "FOR UPDATE SKIP LOCKED",
        "also_new": "{new},",
        "elements_as": "unnest(:{0}::text[]::{1}[]) AS {0} (value)",
        "new_rows": "{new}",
        "from_new": "FROM {new}",
        "values": "SELECT",
        "end_values": "FROM {new} WHERE TRUE",
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
        "publish_function": PUBLISH,
        "json_function": (
            "\n-- A text as JSON; NULL if it is none, so that a row that was spoiled by hand spoils no list.\n"
            "CREATE FUNCTION readable_json(given TEXT) RETURNS JSON LANGUAGE plpgsql IMMUTABLE STRICT AS\n"
            "'BEGIN RETURN given::json; EXCEPTION WHEN OTHERS THEN RETURN NULL; END';"
        ),
    },
)


@cache
def prepared(name: str) -> tuple[str, tuple[str, ...]]:
    """The text of a statement with numbered parameters, and their names in that order."""
    return number_parameters(query(POSTGRES, name))


def array_of(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A column of a batch as the text of an array. The driver examines every element of a list three times before it sends it."""
    values = [row[name] for row in rows]
    if KINDS[name] == "text":
        quoted = [
            "NULL" if value is None else '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'
            for value in values
        ]
        return "{" + ",".join(quoted) + "}"
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def as_parameter(value: Any) -> Any:  # noqa: ANN401 - what a database takes
    """A value as the driver takes it; the elements of a list become texts."""
    return [str(each) for each in value] if isinstance(value, (list, tuple)) else value


def _shifted(by: int, match: re.Match[str]) -> str:
    return f"${int(match[1]) + by}"


@cache
def prepared_together(names: tuple[str, ...]) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """The text of one statement that does what several do and counts the rows that each changed, and the parameters of each."""
    parts: list[str] = []
    parameters: list[tuple[str, ...]] = []
    for name in names:
        text, mine = prepared(name)
        shift = sum(map(len, parameters))
        text = re.sub(r"\$(\d+)", partial(_shifted, shift), text)
        parts.append(f"part_{len(parts)} AS ({text} RETURNING 1)")
        parameters.append(mine)
    counts = ", ".join(f"(SELECT count(*) FROM part_{place})" for place in range(len(parts)))  # noqa: S608
    return f"WITH {', '.join(parts)} SELECT {counts}", tuple(parameters)
