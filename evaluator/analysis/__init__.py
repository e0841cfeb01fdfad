"""What an agent's strategy latent says of its opponents: ``bin/league analyze``."""
