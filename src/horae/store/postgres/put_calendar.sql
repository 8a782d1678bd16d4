-- Shared calendars, new or changed.
INSERT INTO calendar (owner, name, document, updated_at)
SELECT * FROM unnest(:owner::text[], :name::text[], :document::text[], :updated_at::bigint[])
ON CONFLICT (owner, name) DO UPDATE SET document = excluded.document, updated_at = excluded.updated_at
