"""Training curves: a run's files as one picture."""
