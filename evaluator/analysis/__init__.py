"""``bin/league analyze``: shows how well an agent's strategy latent recognises its opponents."""
