-- Set what a session is to have until its end.
SELECT set_config(name, value, FALSE) FROM unnest(:names::text[], :settings::text[]) AS setting (name, value)
