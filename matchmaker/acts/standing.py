"""Whether a learner has learnt enough to be frozen, and whether an exploiter begins anew then."""

from __future__ import annotations

from league.errors import NotFound
from league.exploiters import Generation, Standing, VictimChance
from league.players import Player, PlayerKind, Role
from matchmaker.acts import checks
from matchmaker.sampling import roles
from matchmaker.sampling.candidates import candidate_of
from matchmaker.sampling.mixes import derived_seed, posterior
from matchmaker.sampling.slices import learner_of, situation_of
from matchmaker.state.league import League

SOONEST = 0.25
"""Part of an interval within which no second candidate is frozen: each costs a gate of some 130
matches.
"""


def standing(league: League, player: str, steps: int, interval: int) -> Standing:
    """How a learner stands `steps` after it was last frozen, or began, by its snapshot interval in
    steps.

    The rule is that of its role (`matchmaker.roles`), the paper's unless `matchmaker.roles` names
    the pseudocode's; an exploiter's has its generation's victims in the place of those whom it must
    beat. Asking again gives the same answer while nothing is reported.

    Raises:
        NotFound: no such generation, and no main.
    """
    checks.number(steps, "steps", 0, checks.MAX_STEP)
    checks.number(interval, "interval", 1, checks.MAX_STEP)
    generation = league.view.exploiters.by_player.get(player)
    if generation is None:
        return _of_main(league, player, steps, interval)
    chances = _chances(league, generation)
    rivals = tuple(_rival(league, one) for one in chances)
    situation = roles.Situation(learner=player, role=generation.role, mains=rivals, past=rivals)
    preset = _preset(league)
    due = steps >= SOONEST * interval and roles.snapshot_due(preset, situation, steps, interval)
    uniform = derived_seed(league.seed, generation.number, generation.since_step, steps) / 2.0**63
    done = roles.after_snapshot(preset, generation.role, uniform)
    return Standing(due=due, reset=roles.Step.NEW_GENERATION in done, victims=chances)


def _preset(league: League) -> roles.RolePreset:
    return roles.PAPER if league.settings.roles == "mix" else league.settings.roles


def _of_main(league: League, player: str, steps: int, interval: int) -> Standing:
    """A main's: every N steps by the paper; by the pseudocode when it beats all its past, or
    after 2N.
    """
    live = league.view.players.get(player)
    if live is None or live.kind is not PlayerKind.LIVE or live.role is not Role.MAIN:
        raise NotFound(f"{player[: checks.MAX_NAME]!r} is no main and no exploiter's generation")
    view, preset = league.view, _preset(league)
    if roles.SNAPSHOT_RULES[preset, Role.MAIN].beaten == "nobody":
        return Standing(due=steps >= interval, reset=False, victims=())
    situation = situation_of(league.settings, live, view.players, view.tables)
    hardest = min(situation.past, key=lambda rival: rival.chance, default=None)
    known = [] if hardest is None else [_chance(league, live, hardest.name)]
    return Standing(
        due=roles.snapshot_due(preset, situation, steps, interval),
        reset=False,
        victims=tuple(known),
    )


def _chances(league: League, generation: Generation) -> tuple[VictimChance, ...]:
    learner = league.view.players[generation.player]
    return tuple(_chance(league, learner, name) for name in generation.victims)


def _chance(league: League, learner: Player, name: str) -> VictimChance:
    view = league.view
    candidate = candidate_of(view.players[name], learner, view.tables)
    belief = posterior(candidate.counts, candidate.predicted, league.settings.prior_games)
    return VictimChance(
        victim=name, chance=1.0 - belief.mean_loss(), matches=candidate.counts.games
    )


def _rival(league: League, one: VictimChance) -> roles.Rival:
    victim: Player = league.view.players[one.victim]
    parent = learner_of(victim, league.view.players)
    return roles.Rival(name=victim.name, parent=parent, role=victim.role, chance=one.chance)
