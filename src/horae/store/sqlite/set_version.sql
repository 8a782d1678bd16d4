UPDATE horae SET version = :version
