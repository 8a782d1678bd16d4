UPDATE horae SET version = :version::integer
