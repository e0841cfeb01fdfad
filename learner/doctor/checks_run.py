"""What a run's files say of the reasons: entropy, KL, values, gradients, rewards, wins, scale.

Each function looks at the newest fifth of the run, for what was so at the start need not stay so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median

from league.games.base import CHOICE
from learner.assembly import stage_rewards
from learner.doctor.checks_game import ALONE, DOMINATING
from learner.doctor.findings import Finding, judged, unknown
from learner.doctor.run_evidence import Row, RunEvidence, Series
from learner.ppo.rate import SMALLEST

FEWEST_UPDATES = 10
FEWEST_MATCHES = 40
BROKE = 0.3
"""Share of the entropy that an update must leave: a healthy one leaves over 90 %."""


def _too_short(key: str, what: str) -> Finding:
    return unknown(key, f"too little to judge: {what}")


def entropy_held(run: RunEvidence) -> Finding:
    """18 by the run's own curve: a collapse is an entropy that is gone, or a hundredth of its start."""
    values = run.scalar("policy/entropy")
    if len(values) < FEWEST_UPDATES:
        return _too_short("18", f"{len(values)} updates")
    spec = run.set_up.spec
    most = math.log(spec.action_size) if spec.action_kind == CHOICE else spec.action_size * math.log(2.0)
    now = fmean(run.late("policy/entropy"))
    broke = _worst_fall(values)[0] < BROKE  # then the update is to blame (E), not the entropy's weight
    return judged(
        "18",
        f"entropy {values[0]:.3g} at first, {now:.3g} now: {now / most:.0%} of the largest"
        + (", gone in one update" if broke else ""),
        failure=now < 0.02 * most and not broke,
        warning=now < 0.1 * most,
        fix="raise learner.ent_coef and learner.ent_coef_final, and start from an older snapshot (--from)",
    )


def policy_whole(run: RunEvidence) -> Finding:
    """E: an update that took most of the entropy at once, or that no value survived."""
    values = run.scalar("policy/entropy")
    if len(values) < FEWEST_UPDATES:
        return _too_short("E", f"{len(values)} updates")
    least, update = _worst_fall(values)
    kl = max(run.scalar("policy/approx_kl"), default=0.0)
    return judged(
        "E",
        f"the worst update (number {update}) left {least:.0%} of the entropy; largest KL {kl:.2g}",
        failure=least < BROKE,
        warning=least < 0.5,
        fix="go on from a snapshot before it (--from) with desired_kl = 0.012 or a lower learning_rate",
    )


def _worst_fall(entropies: Series) -> tuple[float, int]:
    """The least share of the entropy that an update left, and the update's number."""
    falls = [(b / a, i + 1) for i, (a, b) in enumerate(pairwise(entropies)) if a > 1e-9]
    return min(falls, default=(1.0, 0))


def steps_fit(run: RunEvidence) -> Finding:
    """16: how far the newest updates moved the policy."""
    kl = run.late("policy/approx_kl")
    if len(kl) < FEWEST_UPDATES:
        return _too_short("16", f"{len(kl)} updates")
    usual, largest = median(kl), max(run.scalar("policy/approx_kl"))
    stuck = largest < 1e-7
    return judged(
        "16",
        f"updates move the policy by a KL of {usual:.2g} (largest of all {largest:.2g})",
        failure=usual > 0.2 or largest > 1.0 or stuck,
        warning=usual > 0.1,
        fix="raise learner.learning_rate tenfold" if stuck else "lower learner.learning_rate tenfold",
    )


def constraints(run: RunEvidence) -> Finding:
    """20: ratios clipped though nothing moves, the target KL hit by every update, the rate at its floor."""
    clipped, kl = run.late("policy/clip_fraction"), run.late("policy/approx_kl")
    if len(kl) < FEWEST_UPDATES:
        return _too_short("20", f"{len(kl)} updates")
    learner = run.set_up.settings.learner
    hit = learner.target_kl is not None and median(kl) > 0.9 * learner.target_kl
    rate = run.late("learning/rate")
    floored = learner.desired_kl is not None and fmean(rate) < 1.01 * SMALLEST * learner.learning_rate
    return judged(
        "20",
        f"{fmean(clipped):.0%} of ratios clipped while KL is {fmean(kl):.1g}; rate {fmean(rate):.1g}"
        + (f"; target_kl {learner.target_kl:g} is hit" if hit else ""),
        failure=fmean(clipped) > 0.5 and fmean(kl) < 0.01,
        warning=hit or floored,
        fix="raise learner.desired_kl" if floored else "raise learner.clip_range (0.2), target_kl (0.03)",
    )


def values_explain(run: RunEvidence) -> Finding:
    """V: explained variance below 0 for long is a critic that is worse than a constant."""
    explained = run.late("value/explained_variance")
    if len(explained) < FEWEST_UPDATES:
        return _too_short("V", f"{len(explained)} updates")
    now, best = median(explained), max(run.scalar("value/explained_variance"))
    return judged(
        "V",
        f"explained variance {now:.2f} now, {best:.2f} at best",
        failure=now < -0.05 or math.isnan(now),
        warning=now < 0.05 and best > 0.3,
        fix="the critic knows less than a mean: look at the rewards (6 to 8), lower learner.learning_rate",
    )


def gradients(run: RunEvidence) -> Finding:
    """12: the norm before clipping."""
    norms = run.late("learning/gradient_norm")
    if len(norms) < FEWEST_UPDATES:
        return _too_short("12", f"{len(norms)} updates")
    usual = median(norms)
    return judged(
        "12",
        f"norm {usual:.3g} before clipping, {max(norms):.3g} at most",
        failure=not math.isfinite(usual) or usual > 100.0,
        warning=max(norms) > 100.0,
        fix="set learner.normalize_returns = true, or lower the rewards' weights",
    )


def components(run: RunEvidence) -> Finding:
    """9: what the terms carried in the newest fifth of the updates."""
    rows = run.rewards[-max(10, len(run.rewards) // 5) :]
    terms = run.set_up.spec.reward_terms
    matches = sum(int(row["matches"]) for row in rows)
    if matches < FEWEST_MATCHES:
        return _too_short("9", f"{matches} matches")
    sizes = {term: fmean(abs(float(row.get(term, 0.0))) for row in rows) for term in terms}
    total = sum(sizes.values())
    weighted = [term for term, weight in zip(terms, run.set_up.weights_K, strict=True) if weight]
    name = max(sizes, key=lambda term: sizes[term])
    share = sizes[name] / total if total else 0.0
    alone = len(weighted) == 1
    return judged(
        "9",
        f"{name} carries {share:.0%} of what matches paid" + (", the only term" if alone else ""),
        failure=not alone and share > ALONE,
        warning=not alone and share > DOMINATING,
        fix=f"lower the weight of {name} in game.reward_weights",
    )


def something_paid(run: RunEvidence) -> Finding:
    """6: whether any match ever paid."""
    paid = [abs(float(row["r"])) for row in run.matches]
    if not paid:
        return _too_short("6", "no match has ended")
    return judged(
        "6",
        f"{sum(one > 0.0 for one in paid)} of {len(paid)} matches paid anything",
        failure=max(paid) == 0.0,
        fix="give a reward term a weight that is not 0 (game.reward, game.reward_weights)",
    )


def win_paid(run: RunEvidence) -> Finding:
    """B: the win term's sums against the wins that were counted, at the weight of the stage."""
    terms = run.set_up.spec.reward_terms
    if "win" not in terms or not run.rewards:
        return unknown("B", "the game has no reward term called win")
    weights = {
        float(abs(stage_rewards(run.set_up.settings, stage)[terms.index("win")]))
        for stage in run.set_up.settings.curriculum.stages
    }
    return _compare_wins(run.rewards, run.matches, weights)


def _compare_wins(rewards: Sequence[Row], matches: Sequence[Row], weights: set[float]) -> Finding:
    """The largest size of `win` in a match of an update with one match, or whose matches ended alike."""
    scores: dict[str, list[float]] = {}
    for row in matches:
        scores.setdefault(row["step"], []).append(float(row["score"]))
    paid = [
        abs(float(row["win"]))
        for row in rewards
        if len(set(scores.get(row["step"], [0.5]))) == 1 and scores.get(row["step"], [0.5])[0] != 0.5
    ]
    if not paid or not max(weights):
        return _too_short("B", "no update whose matches all ended alike, or a win has no weight")
    short = [one for one in paid if min(abs(one - weight) for weight in weights) > 0.01 * max(weights)]
    return judged(
        "B",
        f"a win or loss paid {median(paid):.4g} (weights {', '.join(f'{w:g}' for w in sorted(weights))})",
        failure=len(short) > len(paid) // 2,
        fix="clip no reward on its way: learner.normalize_returns scales wins and steps alike",
    )


def scale_steady(run: RunEvidence) -> Finding:
    """A: the running deviation by which rewards are divided, over the second half of the run."""
    scale = run.scalar("reward/scale")
    if len(scale) < 2 * FEWEST_UPDATES:
        return _too_short("A", f"{len(scale)} updates")
    half = scale[len(scale) // 2 :]
    drift = max(half) / max(min(half), 1e-12)
    return judged(
        "A",
        f"rewards are divided by {half[0]:.3g} at half time, {half[-1]:.3g} now: a factor of {drift:.2f}",
        failure=drift > 10.0,
        warning=drift > 3.0,
        fix="keep reward weights of one size from stage to stage (a preset that anneals changes them)",
    )


def wins_mixed(run: RunEvidence) -> Finding:
    """W: recent results by opponent that are all alike, with a policy that no longer explores."""
    recent = run.matches[-500:]
    by_name: dict[str, list[float]] = {}
    for row in recent:
        by_name.setdefault(row["opponent"].partition("@")[0], []).append(float(row["score"]))
    met = {name: scores for name, scores in by_name.items() if len(scores) >= FEWEST_MATCHES // 2}
    if not met:
        return _too_short("W", f"{len(recent)} matches")
    exact = [name for name, scores in met.items() if set(scores) in ({0.0}, {1.0})]
    spec = run.set_up.spec
    most = math.log(spec.action_size) if spec.action_kind == CHOICE else spec.action_size * math.log(2.0)
    entropy = fmean(run.late("policy/entropy") or (most,))
    told = ", ".join(f"{name} {fmean(scores):.0%}" for name, scores in met.items())
    lost = all(set(scores) == {0.0} for scores in met.values())
    return judged(
        "W",
        f"scores in the newest {len(recent)} matches: {told}",
        failure=len(exact) == len(met) and entropy < 0.1 * most,
        warning=lost and len(recent) >= 5 * FEWEST_MATCHES,
        fix="an easier mix or a reward on the way; without entropy play only repeats itself: raise ent_coef",
    )


def clean_and_training(run: RunEvidence) -> Finding:
    """14: the same opponents in training and in clean matches (the newest snapshot's)."""
    newest = max((_step(cell.row) for cell in run.clean), default=-1)
    clean = {cell.column: cell for cell in run.clean if _step(cell.row) == newest}
    trained: dict[str, list[float]] = {}
    for row in run.matches[-1000:]:
        trained.setdefault(row["opponent"], []).append(float(row["score"]))
    gaps = {
        name: fmean(trained[name]) - (cell.wins + 0.5 * cell.draws) / cell.games
        for name, cell in clean.items()
        if len(trained.get(name, ())) >= FEWEST_MATCHES and cell.games >= FEWEST_MATCHES // 2
    }
    if not gaps:
        return unknown("14", "no opponent with enough matches both in training and clean")
    name = max(gaps, key=lambda one: gaps[one])
    return judged(
        "14",
        f"training scores exceed clean ones by at most {gaps[name]:.0%} ({name})",
        warning=gaps[name] > 0.3,
        fix="meet more opponents (matchmaker.mixes), or choose a smaller agent.size",
    )


def _step(name: str) -> int:
    step = name.rpartition("@")[2]
    return int(step) if step.isdigit() else -1


RUN_CHECKS = (
    entropy_held,
    policy_whole,
    steps_fit,
    constraints,
    values_explain,
    gradients,
    components,
    something_paid,
    win_paid,
    scale_steady,
    wins_mixed,
    clean_and_training,
)
