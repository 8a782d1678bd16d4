-- Note that an input was skipped.
UPDATE flow_input SET skipped_at_ms = :skipped_at_ms WHERE number = :number
