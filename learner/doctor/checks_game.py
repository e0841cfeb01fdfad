"""Reasons 1 to 10, 19, B and O: what is seen, what acts, what repeats, what pays
(docs/doctor.md).
"""

from __future__ import annotations

import math

import numpy as np

from league.runs.alarms import DOMINANT_SHARE
from learner.doctor.evidence import Evidence, first_scores
from learner.doctor.findings import Finding, judged

WIDEST = 1000
"""Numbers in an observation from which on most of them are rarely worth their weights."""
ALONE = 0.95
SCALE_FLOOR = 1e-8
"""What the learner's running variance of the return is never below (`ReturnScale`)."""
NOT_ALIGNED, HARDLY_ALIGNED = 0.5, 0.6
HARDLY_SEEN = 0.3
"""Share of matches: what shows one's own state twice still differs where the opponent's play
touched it.
"""


def observations_change(evidence: Evidence) -> Finding:
    game = evidence.game
    share = game.changing_steps
    varying = max(game.varying_own, game.varying_rest)
    return judged(
        "1",
        f"another view after {share:.0%} of decisions; {game.varying_own:.0%} of the own numbers and "
        f"{game.varying_rest:.0%} of the others ever change",
        failure=share < 0.05 or varying == 0.0,
        warning=share < 0.5,
        fix="let the game's step write its new state into observations_N2O",
    )


def actions_act(evidence: Evidence) -> Finding:
    acting = evidence.game.acting
    dead = [name for name, acts in acting.items() if not acts]
    named = ", ".join(dead[:6])
    return judged(
        "2",
        f"{len(acting) - len(dead)} of {len(acting)} actions tried made a difference"
        + (f"; none: {named}" if dead else ""),
        failure=bool(acting) and len(dead) == len(acting),
        warning=bool(dead),
        fix="pass the actions on to the game: what does nothing can't be learnt",
    )


def repeats(evidence: Evidence) -> Finding:
    share = evidence.game.repeats
    return judged(
        "3",
        f"{share:.0%} of matches come out alike when played again from their seeds",
        failure=share < 1.0,
        fix="draw all luck of a match from its seed, and keep nothing between matches or rows",
    )


def observation_size(evidence: Evidence) -> Finding:
    game = evidence.game
    seen = game.opponent_seen
    blind = seen == 0.0
    said = "" if seen is None else f"; what the opponent does shows in {seen:.0%} of matches"
    dim = seen is not None and seen < HARDLY_SEEN
    return judged(
        "4",
        f"{game.size} numbers, {game.own_size} of them the own part{said}",
        failure=blind or game.size > 10 * WIDEST,
        warning=dim or game.size > WIDEST,
        fix="show the opponent's state behind the own part"
        if dim
        else "leave out what never matters, or sum it up in fewer numbers",
    )


def observations_finite(evidence: Evidence) -> Finding:
    game = evidence.game
    broken = 1.0 - game.finite_share
    return judged(
        "5",
        f"{broken:.2%} of all numbers are NaN or infinite; the largest is {game.largest:.3g}",
        failure=broken > 0.0,
        warning=game.largest > 1.001,
        fix="bound what is observed: the contract wants finite numbers from -1 to 1",
    )


def rewards_exist(evidence: Evidence) -> Finding:
    fresh, bots = _paying_shares(evidence)
    weighted = int((evidence.set_up.weights_K != 0.0).sum())
    return judged(
        "6",
        f"{weighted} terms have a weight; {fresh:.1%} of decisions at random and {bots:.1%} of the bots' pay",
        failure=fresh == 0.0 and bots == 0.0,
        fix="give a reward term a weight that is not 0 (game.reward, game.reward_weights), or make it fire",
    )


def _paying_shares(evidence: Evidence) -> tuple[float, float]:
    """Share of decisions with a reward other than 0: of random play (seat 0), and of bots."""
    shares = []
    for trace, seats in ((evidence.game.fresh, slice(0, 1)), (evidence.game.bots, slice(0, 2))):
        paid = trace.rewards_TN2(evidence.set_up.weights_K)[:, :, seats] != 0.0
        shares.append(float(paid[trace.first_TN].mean()))
    return shares[0], shares[1]


def rewards_dense_enough(evidence: Evidence) -> Finding:
    fresh, _ = _paying_shares(evidence)
    gap = 1.0 / fresh if fresh > 0.0 else float("inf")
    return judged(
        "7",
        f"a reward every {gap:.3g} decisions of random play; the discount reaches {evidence.reach:.3g}",
        failure=gap > 3.0 * evidence.reach,
        warning=gap > evidence.reach,
        fix="add a term that pays on the way (game.reward = dense), or raise learner.gamma",
    )


def reward_scale(evidence: Evidence) -> Finding:
    learner, raw = evidence.set_up.settings.learner, evidence.return_std()
    effective = raw / math.sqrt(raw**2 + SCALE_FLOOR) if learner.normalize_returns else raw
    how = "divided by its deviation" if learner.normalize_returns else "as it is"
    return judged(
        "8",
        f"the discounted return deviates by {raw:.3g}; learnt from {how}: {effective:.3g}",
        failure=not 0.01 <= effective <= 100.0,
        warning=not 0.1 <= effective <= 10.0,
        fix="set learner.normalize_returns = true"
        if not learner.normalize_returns
        else "multiply game.reward_weights: below 1e-4 the return is lost in the scale's own floor",
    )


def win_arrives(evidence: Evidence) -> Finding:
    environment = evidence.environment
    if environment.fault:
        return judged(
            "B", environment.fault, warning=True, fix="mend what stopped the matches first"
        )
    share = environment.lost / max(environment.accounted / max(environment.ended, 1), 1e-9)
    return judged(
        "B",
        f"{environment.ended} matches paid {environment.accounted:.4g} by their accounts, "
        f"{environment.paid:.4g} arrived",
        failure=environment.lost > 1e-3 and share > 1e-3,
        fix="clip no reward on its way: learner.normalize_returns scales wins and steps alike",
    )


def components_balanced(evidence: Evidence) -> Finding:
    shares = evidence.term_shares()
    name, share = max(shares.items(), key=lambda item: item[1], default=("none", 0.0))
    silent = [term for term, part in shares.items() if part == 0.0]
    alone = len(shares) == 1
    said = f"; never fires: {', '.join(silent)}" if silent else ""
    return judged(
        "9",
        f"{name} carries {share:.0%}"
        + (", the only term" if alone else f" of {len(shares)} terms")
        + said,
        failure=not alone and share > ALONE,
        warning=bool(silent) or (not alone and share > DOMINANT_SHARE),
        fix=f"lower the weight of {name} in game.reward_weights"
        if share > DOMINANT_SHARE
        else "make the term fire, or take its weight away",
    )


def reward_aligned(evidence: Evidence) -> Finding:
    share, decided = evidence.alignment()
    return judged(
        "10",
        f"the winner was paid more than the loser in {share:.0%} of {decided} decided matches",
        failure=decided > 0 and share < NOT_ALIGNED,
        warning=decided > 0 and share < HARDLY_ALIGNED,
        fix="raise the weight of win, and look for a term whose sign is wrong",
    )


def gamma_fits(evidence: Evidence) -> Finding:
    reach, length = evidence.reach, evidence.match_length
    far, near = reach > 1000.0 and length > 500.0, reach < 10.0 and length > 30.0
    return judged(
        "19",
        f"gamma {evidence.set_up.settings.learner.gamma:g} reaches {reach:.3g} decisions of matches of "
        f"{length:.3g}",
        failure=(reach < 3.0 and length > 2.0 * reach) or (far and reach == float("inf")),
        warning=far or near,
        fix="raise learner.gamma: 0.98 reaches 50 decisions, 0.99 100"
        if not far
        else "lower learner.gamma",
    )


def opponents_teach(evidence: Evidence) -> Finding:
    game, bots = evidence.game, evidence.set_up.opponents
    scores_N = first_scores(game.fresh)
    by_name = {
        name: float(
            np.nanmean(scores_N[[n for n, met in enumerate(game.fresh_opponents) if met == name]])
        )
        for name in dict.fromkeys(game.fresh_opponents)
    }
    paid_N = (game.fresh.rewards_TN2(evidence.set_up.weights_K)[..., 0] * game.fresh.first_TN).sum(
        0
    )
    told = ", ".join(f"{name} {score:.0%}" for name, score in by_name.items()) or "no bot"
    easy = bool(by_name) and min(by_name.values()) >= 0.95
    return judged(
        "O",
        f"random play scores: {told}; its matches pay {paid_N.mean():.3g} ± {paid_N.std():.3g}",
        failure=float(paid_N.std()) < 1e-9,
        warning=easy or not bots,
        fix="meet an opponent that random play does not beat (matchmaker.mixes)"
        if easy
        else "meet opponents against whom better play is paid more: another mix, or a reward on the way",
    )


GAME_CHECKS = (
    observations_change,
    actions_act,
    repeats,
    observation_size,
    observations_finite,
    rewards_exist,
    rewards_dense_enough,
    reward_scale,
    components_balanced,
    reward_aligned,
    gamma_fits,
    win_arrives,
    opponents_teach,
)
