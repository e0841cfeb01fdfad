"""What a run's files say of the reasons: entropy, KL, values, gradients, rewards, wins, scale.

Each function looks at the newest fifth of the run, for what was so at the start need not stay so.
What the learner warns of while it runs is judged by the same rules, `league.runs.alarms`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median

from league.runs.alarms import (
    ENTROPY_LOW,
    EXPLAINED_VARIANCE,
    KL_LARGEST,
    largest_entropy,
)
from learner.doctor.checks_learning import EXPLODED, STUCK, optimizer_steps
from learner.doctor.checks_run_rewards import REWARD_CHECKS
from learner.doctor.findings import Finding, judged, unknown
from learner.doctor.run_evidence import FEWEST_MATCHES, FEWEST_UPDATES, RunEvidence, too_short
from learner.ppo.rate import SMALLEST

MISREAD_KL, MISREAD_SHARE = 1e-3, 0.2
"""KL divergence at which an update begins, and its share of the whole update's. It is no exact
0: what the actor carried along from the rollout before was computed with the weights of then.
"""
BROKE = 0.3
"""Share of the entropy that an update must leave: a healthy one leaves over 90 %."""


def entropy_held(run: RunEvidence) -> Finding:
    """18 by the run's own curve."""
    values = run.scalar("policy/entropy")
    if len(values) < FEWEST_UPDATES:
        return too_short("18", f"{len(values)} updates")
    most, now = _most(run), fmean(run.late("policy/entropy"))
    # then the update is to blame (E), not the entropy's weight
    broke = _worst_fall(values)[0] < BROKE
    return judged(
        "18",
        f"entropy {values[0]:.3g} at first, {now:.3g} now: {now / most:.0%} of the largest"
        + (", gone in one update (E)" if broke else ""),
        failure=bool(run.alarms_of("entropy_collapse")) and not broke,
        warning=now < ENTROPY_LOW * most and not broke,
        fix="raise learner.ent_coef and learner.ent_coef_final, and start from an older snapshot (--from)",
    )


def policy_whole(run: RunEvidence) -> Finding:
    """E: an update that took most of the entropy at once, or that no value survived."""
    values = run.scalar("policy/entropy")
    if len(values) < FEWEST_UPDATES:
        return too_short("E", f"{len(values)} updates")
    least, update = _worst_fall(values)
    kl = max(run.scalar("policy/approx_kl"), default=0.0)
    return judged(
        "E",
        f"the worst update (number {update}) left {least:.0%} of the entropy; largest KL {kl:.2g}",
        failure=least < BROKE,
        warning=least < 0.5,
        fix="go on from a snapshot before it (--from) with desired_kl = 0.012 or a lower learning_rate",
    )


def _most(run: RunEvidence) -> float:
    """Entropy of play that knows nothing, in nats."""
    return largest_entropy(run.set_up.spec.action_kind, run.set_up.spec.action_size)


def _worst_fall(entropies: Sequence[float]) -> tuple[float, int]:
    """The least share of the entropy that an update left, and the update's number."""
    falls = [(b / a, i + 1) for i, (a, b) in enumerate(pairwise(entropies)) if a > 1e-9]
    return min(falls, default=(1.0, 0))


def steps_fit(run: RunEvidence) -> Finding:
    """16: how far the newest updates moved the policy."""
    kl = run.late("policy/approx_kl")
    if len(kl) < FEWEST_UPDATES:
        return too_short("16", f"{len(kl)} updates")
    usual, largest = median(kl), max(run.scalar("policy/approx_kl"))
    stuck = largest < STUCK and optimizer_steps(run.learner) > 1  # a first one's KL is 0
    return judged(
        "16",
        f"updates move the policy by a KL of {usual:.2g} (largest of all {largest:.2g})",
        failure=usual > 2.0 * KL_LARGEST or largest > 1.0 or stuck,
        warning=usual > KL_LARGEST or bool(run.alarms_of("kl_too_high")),
        fix="raise learner.learning_rate tenfold"
        if stuck
        else "lower learner.learning_rate tenfold",
    )


def constraints(run: RunEvidence) -> Finding:
    """20: ratios clipped though nothing moves, the target KL hit by every update, the rate at
    its floor.
    """
    clipped, kl = run.late("policy/clip_fraction"), run.late("policy/approx_kl")
    if len(kl) < FEWEST_UPDATES:
        return too_short("20", f"{len(kl)} updates")
    learner = run.learner
    hit = learner.target_kl is not None and median(kl) > 0.9 * learner.target_kl
    rate = run.late("learning/rate")
    floored = (
        learner.desired_kl is not None and fmean(rate) < 1.01 * SMALLEST * learner.learning_rate
    )
    return judged(
        "20",
        f"{fmean(clipped):.0%} of ratios clipped while KL is {fmean(kl):.1g}; rate {fmean(rate):.1g}"
        + (f"; target_kl {learner.target_kl:g} is hit" if hit else ""),
        failure=fmean(clipped) > 0.5 and fmean(kl) < 0.01,
        warning=hit or floored,
        fix="raise learner.desired_kl"
        if floored
        else "raise learner.clip_range (0.2), target_kl (0.03)",
    )


def memory_kept(run: RunEvidence) -> Finding:
    """15: what the learner remembers of a rollout against what the actor did."""
    apart, moved = run.late("policy/first_kl"), run.late("policy/approx_kl")
    if len(apart) < FEWEST_UPDATES:
        return too_short("15", f"{len(apart)} updates")
    usual = median(apart)
    return judged(
        "15",
        f"an update begins at a KL of {usual:.1g} from the policy that acted",
        failure=not usual < MISREAD_KL and usual > MISREAD_SHARE * median(moved),
        fix="let step and unroll of the agent clear and carry the same state",
    )


def values_explain(run: RunEvidence) -> Finding:
    """V: explained variance below 0 for long is a critic that is worse than a constant."""
    explained = run.late("value/explained_variance")
    if len(explained) < FEWEST_UPDATES:
        return too_short("V", f"{len(explained)} updates")
    now, best = median(explained), max(run.scalar("value/explained_variance"))
    return judged(
        "V",
        f"explained variance {now:.2f} now, {best:.2f} at best",
        failure=bool(run.alarms_of("value_unexplained")) or math.isnan(now),
        warning=now < EXPLAINED_VARIANCE or (now < 0.05 and best > 0.3),
        fix="the critic knows less than a mean: look at the rewards (6 to 8), lower learner.learning_rate",
    )


def gradients(run: RunEvidence) -> Finding:
    """12: the norm before clipping."""
    norms = run.late("learning/gradient_norm")
    if len(norms) < FEWEST_UPDATES:
        return too_short("12", f"{len(norms)} updates")
    usual = median(norms)
    return judged(
        "12",
        f"norm {usual:.3g} before clipping, {max(norms):.3g} at most",
        failure=bool(run.alarms_of("not_finite")) or not math.isfinite(usual) or usual > EXPLODED,
        warning=max(norms) > EXPLODED,
        fix="set learner.normalize_returns = true, or lower the rewards' weights",
    )


def wins_mixed(run: RunEvidence) -> Finding:
    """W: recent results by opponent that are all alike, with a policy that no longer explores."""
    recent = run.matches[-500:]
    by_name: dict[str, list[float]] = {}
    for row in recent:
        by_name.setdefault(row["opponent"].partition("@")[0], []).append(float(row["score"]))
    met = {name: scores for name, scores in by_name.items() if len(scores) >= FEWEST_MATCHES // 2}
    if not met:
        return too_short("W", f"{len(recent)} matches")
    exact = [name for name, scores in met.items() if set(scores) in ({0.0}, {1.0})]
    entropy = fmean(run.late("policy/entropy") or (_most(run),))
    told = ", ".join(f"{name} {fmean(scores):.0%}" for name, scores in met.items())
    alarms = run.alarms_of("never_won", "always_won")
    return judged(
        "W",
        f"scores in the newest {len(recent)} matches: {told}",
        failure=len(exact) == len(met) and entropy < ENTROPY_LOW * _most(run),
        warning=bool(alarms),
        fix="stronger opponents (matchmaker.mixes)"
        if any(alarm.kind == "always_won" for alarm in alarms)
        else "an easier mix or a reward on the way; without entropy play repeats itself: raise ent_coef",
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
    memory_kept,
    steps_fit,
    constraints,
    values_explain,
    gradients,
    *REWARD_CHECKS,
    wins_mixed,
    clean_and_training,
)
