"""What every gRPC service of the league has: authentication, health, draining, limits, metrics and logs."""
