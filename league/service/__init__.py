"""What every gRPC service of the league has: its door, health, drain, limits, metrics and logs."""
