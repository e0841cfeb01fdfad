"""Who may be drawn: the players of each category, and their probabilities for one learner."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from league.errors import ConfigError, InvalidName, NotFound
from league.ids import SnapshotName
from league.payoff import Counts
from league.players import CATEGORIES, Book, Player, PlayerKind, PlayerState, Role
from league.ratings import Belief, RatingTable, quality, win_probability
from matchmaker.sampling import (
    Candidate,
    Distribution,
    Policy,
    adapted_mix,
    candidate_weights,
    category_shares,
    normalised,
)
from matchmaker.settings import MatchmakerSettings

SELF = "self"
EXPLOITERS = (Role.MAIN_EXPLOITER, Role.LEAGUE_EXPLOITER)


@dataclass(frozen=True)
class DrawTable:
    """What one call's opponents are drawn from. `body_json` is what the log keeps of it."""

    shares: Distribution
    within: dict[str, Distribution]
    body_json: str


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


def draw_table(
    settings: MatchmakerSettings,
    learner: Player,
    mix_name: str,
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
) -> DrawTable:
    """The probabilities for one learner now; a pure function of its arguments.

    A mix whose categories are all empty means self-play.
    """
    mix, policy = mix_of(settings, mix_name), policy_of(settings)
    refuse_held_out(mix_name, mix, players)
    if settings.adaptive:
        met = {
            category: newest_clean_counts(settings, category, learner, players, tables) for category in mix
        }
        known = {name: counts for name, counts in met.items() if counts.games}
        mix = adapted_mix(mix, known, settings.adaptive, settings.prior_games)
    groups = {category: members(category, learner, players) for category in mix}
    shares = category_shares(mix, {category: bool(group) for category, group in groups.items()})
    if not shares:
        groups, shares = {SELF: [learner]}, {SELF: 1.0}
    within, body = {}, {}
    for category in shares:
        candidates = [candidate_of(player, learner, tables) for player in groups[category]]
        weights = candidate_weights(policy, candidates)
        names = tuple(candidate.name for candidate in candidates)
        within[category] = Distribution(names, tuple(normalised(weights)))
        body[category] = [[name, weight] for name, weight in zip(names, weights, strict=True)]
    description = {
        "player": learner.name,
        "mix": mix_name,
        "rule": policy.rule,
        "shares": shares,
        "candidates": body,
    }
    return DrawTable(
        Distribution(tuple(shares), tuple(shares.values())),
        within,
        json.dumps(description, separators=(",", ":")),
    )


def newest_clean_counts(
    settings: MatchmakerSettings,
    category: str,
    learner: Player,
    players: Mapping[str, Player],
    tables: Mapping[Book, RatingTable],
) -> Counts:
    """Clean matches of the learner's newest snapshots against the bot `category`; none for other ones.

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
        if player.kind is PlayerKind.SNAPSHOT and _lineage(player.name) == learner.name
    )
    met = (counts for name in own if (counts := payoff.counts(name, category)).games)
    newest = list(islice(met, settings.adaptive_snapshots))
    return Counts(
        wins=sum(counts.wins for counts in newest),
        draws=sum(counts.draws for counts in newest),
        losses=sum(counts.losses for counts in newest),
    )


def _lineage(name: str) -> str:
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
    """The eval rating; before it has played there the train rating, which a snapshot inherits from the
    learner; one that inherited none is taken to be as strong as the learner it was just copied from."""
    if tables[Book.EVAL].has(player.name):
        return tables[Book.EVAL].belief(player.name)
    if tables[Book.TRAIN].knows(player.name):
        return tables[Book.TRAIN].belief(player.name)
    return learner if player.kind is PlayerKind.SNAPSHOT else tables[Book.TRAIN].belief(player.name)


def draw_table_of(body_json: str) -> DrawTable:
    """The table as the log kept it, to draw from it again."""
    body = json.loads(body_json)
    within = {
        category: Distribution(
            tuple(name for name, _ in rows), tuple(normalised([weight for _, weight in rows]))
        )
        for category, rows in body["candidates"].items()
    }
    shares = Distribution(tuple(body["shares"]), tuple(body["shares"].values()))
    return DrawTable(shares, within, body_json)
