"""Later versions of flows, which ``examples.flow_fixer`` loads when an earlier one fails."""
