"""Whether an exploiter has learnt enough to be frozen, and whether it begins anew then."""

from __future__ import annotations

from league.errors import NotFound
from league.exploiters import Generation, Standing, VictimChance
from league.players import Player
from matchmaker import checks, roles
from matchmaker.candidates import candidate_of
from matchmaker.league import League
from matchmaker.sampling import derived_seed, posterior
from matchmaker.slices import learner_of

SOONEST = 0.25
"""Part of an interval within which no second candidate is frozen: each costs a gate of some 130 matches."""


def standing(league: League, player: str, steps: int, interval: int) -> Standing:
    """How an exploiter stands `steps` after it was last frozen, or began, by its snapshot interval in steps.

    The rule is that of its role (`matchmaker.roles`), the paper's unless `matchmaker.roles` names the
    pseudocode's, with the generation's victims in the place of those whom it must beat. Asking again gives
    the same answer while nothing is reported.

    Raises:
        NotFound: no such generation.
    """
    checks.number(steps, "steps", 0, checks.MAX_STEP)
    checks.number(interval, "interval", 1, checks.MAX_STEP)
    generation = league.view.exploiters.by_player.get(player)
    if generation is None:
        raise NotFound(f"{player[: checks.MAX_NAME]!r} is no exploiter's generation: begin one first")
    chances = _chances(league, generation)
    rivals = tuple(_rival(league, one) for one in chances)
    situation = roles.Situation(learner=player, role=generation.role, mains=rivals, past=rivals)
    preset = roles.PAPER if league.settings.roles == "mix" else league.settings.roles
    due = steps >= SOONEST * interval and roles.snapshot_due(preset, situation, steps, interval)
    uniform = derived_seed(league.seed, generation.number, generation.since_step, steps) / 2.0**63
    done = roles.after_snapshot(preset, generation.role, uniform)
    return Standing(due=due, reset=roles.Step.NEW_GENERATION in done, victims=chances)


def _chances(league: League, generation: Generation) -> tuple[VictimChance, ...]:
    view, learner = league.view, league.view.players[generation.player]
    found = []
    for name in generation.victims:
        candidate = candidate_of(view.players[name], learner, view.tables)
        belief = posterior(candidate.counts, candidate.predicted, league.settings.prior_games)
        chance = 1.0 - belief.mean_loss()
        found.append(VictimChance(victim=name, chance=chance, matches=candidate.counts.games))
    return tuple(found)


def _rival(league: League, one: VictimChance) -> roles.Rival:
    victim: Player = league.view.players[one.victim]
    parent = learner_of(victim, league.view.players)
    return roles.Rival(name=victim.name, parent=parent, role=victim.role, chance=one.chance)
