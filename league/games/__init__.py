"""Games, and their registration with Gymnasium: after `import league.games`,
`gymnasium.make("league/Brawl-v0", opponent="based")` works. Loads neither a game nor the compiler."""

import gymnasium

BRAWL_ENVIRONMENT = "league/Brawl-v0"

if BRAWL_ENVIRONMENT not in gymnasium.registry:
    gymnasium.register(id=BRAWL_ENVIRONMENT, entry_point="league.games.gym_env:BrawlEnv")
