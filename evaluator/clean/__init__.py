"""The evaluator at work: it plans, plays and reports clean matches of a running league."""
