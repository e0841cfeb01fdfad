"""Decides who may call the league's services, by tokens with roles and by TLS certificates."""
