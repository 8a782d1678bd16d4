-- A shared calendar, new or changed.
INSERT INTO calendar (owner, name, document, updated_at)
VALUES (:owner, :name, :document, :updated_at)
ON CONFLICT (owner, name) DO UPDATE SET document = excluded.document, updated_at = excluded.updated_at
