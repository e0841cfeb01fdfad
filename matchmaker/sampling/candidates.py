"""Who may be drawn: the players of each category, and what the sampling rules need to know of
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from league.errors import ConfigError, InvalidName, NotFound
from league.ids import SnapshotName
from league.players import CATEGORIES, Book, Player, PlayerKind, PlayerState, Role
from league.stats.payoff import Counts
from league.stats.ratings import Belief, RatingTable, quality, win_probability
from matchmaker.sampling.mixes import Candidate, Policy
from matchmaker.settings import MatchmakerSettings

SELF = "self"
EXPLOITERS = (Role.MAIN_EXPLOITER, Role.LEAGUE_EXPLOITER)


def policy_of(settings: MatchmakerSettings) -> Policy:
    return Policy(
        rule=settings.within_snapshots,
        power=settings.pfsp_power,
        prior_games=settings.prior_games,
        recent_count=settings.recent_count,
        recent_share=settings.recent_share,
    )


def mix_of(settings: MatchmakerSettings, name: str) -> Mapping[str, float]:
    """Raises `NotFound` for a mix that the settings don't hold."""
    if name not in settings.mixes:
        raise NotFound(
            f"there is no mix {name!r}: [matchmaker] mixes holds {', '.join(sorted(settings.mixes))}"
        )
    return settings.mixes[name]


def members(category: str, learner: Player, players: Mapping[str, Player]) -> list[Player]:
    """Active players of a category in order of registration, oldest first; held-out ones never."""
    if category == SELF:
        return [learner]
    if category not in CATEGORIES:
        players = {category: players[category]} if category in players else {}
    return [
        player
        for player in players.values()
        if player.state is PlayerState.ACTIVE
        and not player.held_out
        and player.name != learner.name
        and _belongs(player, category)
    ]


def refuse_held_out(mix_name: str, mix: Mapping[str, float], players: Mapping[str, Player]) -> None:
    """Raises `ConfigError` when a mix names a player that is kept for the evaluator."""
    for category in mix:
        player = players.get(category)
        if player is not None and player.held_out:
            raise ConfigError(
                f"mix {mix_name!r} names {category}, which is held out for the evaluator and never trained "
                "against: take it out of [matchmaker.mixes]"
            )


def _belongs(player: Player, category: str) -> bool:
    frozen = player.kind is PlayerKind.SNAPSHOT
    if category == "snapshots":
        return frozen and player.role in (Role.NONE, Role.MAIN)
    if category == "exploiters":
        return frozen and player.role in EXPLOITERS
    if category == "clone":
        return frozen and player.role is Role.CLONE
    if category == "reference":
        return player.kind is PlayerKind.REFERENCE
    return player.kind is PlayerKind.BOT and player.name == category


def newest_clean_counts(
    settings: MatchmakerSettings,
    category: str,
    learner: Player,
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
) -> Counts:
    """Clean matches of the learner's newest snapshots against the bot `category`; none for other
    ones.

    Clean, not training matches: these are many for each snapshot whatever the mix, so a bot that is
    hardly played any more is still watched.
    """
    bot = players.get(category)
    if bot is None or bot.kind is not PlayerKind.BOT:
        return Counts()
    payoff = tables[Book.EVAL].payoff
    own = (
        player.name
        for player in reversed(list(players.values()))
        if player.kind is PlayerKind.SNAPSHOT and lineage_of(player.name) == learner.name
    )
    met = (counts for name in own if (counts := payoff.counts(name, category)).games)
    newest = list(islice(met, settings.adaptive_snapshots))
    return Counts(
        wins=sum(counts.wins for counts in newest),
        draws=sum(counts.draws for counts in newest),
        losses=sum(counts.losses for counts in newest),
    )


def lineage_of(name: str) -> str:
    try:
        return SnapshotName.parse(name).lineage
    except InvalidName:
        return name


def candidate_of(player: Player, learner: Player, tables: Mapping[Book, RatingTable]) -> Candidate:
    """What the sampling rules need to know of an opponent."""
    mine = learner_belief(learner, tables)
    theirs = opponent_belief(player, mine, tables)
    return Candidate(
        name=player.name,
        counts=tables[Book.TRAIN].payoff.counts(learner.name, player.name),
        predicted=win_probability(mine, theirs, tables[Book.TRAIN].link),
        quality=quality(mine, theirs),
    )


def learner_belief(learner: Player, tables: Mapping[Book, RatingTable]) -> Belief:
    """A learner is predicted by its live rating, which follows its changing weights."""
    return tables[Book.TRAIN].belief(learner.name)


def opponent_belief(player: Player, learner: Belief, tables: Mapping[Book, RatingTable]) -> Belief:
    """The eval rating; before it has played there the train rating, which a snapshot inherits
    from the learner; one that inherited none is taken to be as strong as the learner it was just
    copied from.
    """
    if tables[Book.EVAL].has(player.name):
        return tables[Book.EVAL].belief(player.name)
    if tables[Book.TRAIN].knows(player.name):
        return tables[Book.TRAIN].belief(player.name)
    return learner if player.kind is PlayerKind.SNAPSHOT else tables[Book.TRAIN].belief(player.name)
