"""What every gRPC service shares: authentication, health, draining, limits, metrics and logs."""
