"""What a run's files say of its rewards: whether they pay, how they divide, arrive, and are
scaled.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from statistics import fmean, median

from league.runs.alarms import DOMINANT_SHARE, OUTCOME_TERMS, largest_share
from learner.doctor.checks_game import ALONE
from learner.doctor.findings import Finding, judged
from learner.doctor.run_evidence import FEWEST_MATCHES, FEWEST_UPDATES, RunEvidence, too_short

Pair = tuple[float, float]


def components(run: RunEvidence) -> Finding:
    """9: what the terms carried in the newest fifth of the updates."""
    rows = run.rewards[-max(10, len(run.rewards) // 5) :]
    terms = run.set_up.spec.reward_terms
    matches = sum(int(row["matches"]) for row in rows)
    if matches < FEWEST_MATCHES:
        return too_short("9", f"{matches} matches")
    sizes = {term: fmean(abs(float(row.get(term, 0.0))) for row in rows) for term in terms}
    name, share = largest_share(sizes)
    alone = int((run.set_up.weights_K != 0.0).sum()) == 1
    free = alone or name in OUTCOME_TERMS  # what a match is about may carry all
    silent = [alarm.subject for alarm in run.alarms_of("term_silent")]
    return judged(
        "9",
        f"{name} carries {share:.0%} of what matches paid"
        + (", the only term" if alone else "")
        + (f"; never fires: {', '.join(silent)}" if silent else ""),
        failure=not free and share > ALONE,
        warning=bool(silent) or (not free and share > DOMINANT_SHARE),
        fix=f"lower the weight of {name} in game.reward_weights"
        if not free and share > DOMINANT_SHARE
        else "make the term fire, or take its weight away",
    )


def something_paid(run: RunEvidence) -> Finding:
    """6: whether any match ever paid."""
    paid = [abs(float(row["r"])) for row in run.matches]
    if not paid:
        return too_short("6", "no match has ended")
    return judged(
        "6",
        f"{sum(one > 0.0 for one in paid)} of {len(paid)} matches paid anything",
        failure=max(paid) == 0.0,
        fix="give a reward term a weight that is not 0 (game.reward, game.reward_weights)",
    )


def win_paid(run: RunEvidence) -> Finding:
    """B: what this stage's matches paid for their end, against a win's weight and what arrived
    of it.
    """
    weight = _win_weight(run)
    booked = _booked_wins(run, weight) if weight else []
    met = _arrived(run, _due_by_step(run, abs(weight)))
    if len(met) < FEWEST_UPDATES and not booked:
        return too_short("B", f"{len(met)} updates in which a match was won or lost")
    short = [paid for paid, wanted in booked if abs(paid - wanted) > 0.01 * abs(weight)]
    cut = [came for came, wanted in met if came < 0.5 * wanted]
    return judged(
        "B",
        _wins_said(booked, weight, met),
        failure=2 * len(short) > len(booked) or 2 * len(cut) > len(met),
        fix="clip no reward on its way: learner.normalize_returns scales wins and steps alike",
    )


def _wins_said(booked: list[Pair], weight: float, met: list[Pair]) -> str:
    said = []
    if booked:
        share = sum(paid * wanted for paid, wanted in booked) / sum(
            wanted**2 for _, wanted in booked
        )
        said.append(
            f"a win or loss paid {share * abs(weight):.4g} by the accounts (weight {weight:g})"
        )
    if met:
        came, wanted = (median(values) for values in zip(*met, strict=True))
        said.append(f"{wanted:.3g} was due in one step, {came:.3g} arrived")
    return "; ".join(said)


def _win_weight(run: RunEvidence) -> float:
    """A win's weight now; 0 where the game has no such term."""
    terms = run.set_up.spec.reward_terms
    return float(run.set_up.weights_K[terms.index("win")]) if "win" in terms else 0.0


def _booked_wins(run: RunEvidence, weight: float) -> list[Pair]:
    """By update, the term `win` a match as it was noted and as the scores want it, where that is
    not 0.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for row in run.matches:
        scores[row["step"]].append(float(row["score"]))
    rows = [
        row for row in run.rewards if row["step"] in scores and int(row["step"]) > run.stage_start
    ]
    pairs = [(float(row["win"]), weight * (2.0 * fmean(scores[row["step"]]) - 1.0)) for row in rows]
    return [(paid, wanted) for paid, wanted in pairs if wanted]


def _arrived(run: RunEvidence, due: dict[int, float]) -> list[Pair]:
    """The largest reward that arrived in a rollout and the least that had to; an update is
    logged a rollout later than the matches of its own.
    """
    largest = run.at_steps("reward/largest")
    steps = sorted(largest)
    logged = ((bisect_right(steps, step), wanted) for step, wanted in due.items() if wanted > 0.0)
    return [(largest[steps[place]], wanted) for place, wanted in logged if place < len(steps)]


def _due_by_step(run: RunEvidence, win: float) -> dict[int, float]:
    """By update, the least that must have arrived in one step: a win's weight, or the largest
    payoff.
    """
    terms = zip(run.set_up.spec.reward_terms, run.set_up.weights_K, strict=True)
    all_at_the_end = all(term in OUTCOME_TERMS for term, weight in terms if weight)
    due: dict[int, float] = {}
    for row in run.matches:
        step, decided = int(row["step"]), float(row["score"]) != 0.5
        paid = abs(float(row["r"])) if all_at_the_end else win * decided
        if step > run.stage_start:
            due[step] = max(due.get(step, 0.0), paid)
    return due


def scale_steady(run: RunEvidence) -> Finding:
    """A: the running deviation by which rewards are divided, over the second half of the run."""
    scale = run.scalar("reward/scale")
    if len(scale) < 2 * FEWEST_UPDATES:
        return too_short("A", f"{len(scale)} updates")
    half = scale[len(scale) // 2 :]
    drift = max(half) / max(min(half), 1e-12)
    return judged(
        "A",
        f"rewards are divided by {half[0]:.3g} at half time, {half[-1]:.3g} now: a factor of {drift:.2f}",
        failure=drift > 10.0,
        warning=drift > 3.0,
        fix="keep reward weights of one size from stage to stage (a preset that anneals changes them)",
    )


REWARD_CHECKS = (components, something_paid, win_paid, scale_steady)
