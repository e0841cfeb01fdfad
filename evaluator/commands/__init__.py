"""The evaluator's commands of `bin/league`."""
