"""Who may ask the league's services, and how both sides prove who they are: tokens by role, TLS."""
