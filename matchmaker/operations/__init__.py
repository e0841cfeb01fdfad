"""How a running matchmaker is watched: audit trail, metrics, health of its disk, log lines."""
