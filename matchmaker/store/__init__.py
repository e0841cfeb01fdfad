"""Where the league's log lives."""
