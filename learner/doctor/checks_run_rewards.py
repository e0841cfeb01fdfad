"""What a run's files say of its rewards: whether they pay, how they divide, arrive, and are scaled."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean, median

from league.alarms import DOMINANT_SHARE, OUTCOME_TERMS, largest_share
from learner.assembly import stage_rewards
from learner.doctor.checks_game import ALONE
from learner.doctor.findings import Finding, judged
from learner.doctor.run_evidence import FEWEST_MATCHES, FEWEST_UPDATES, RunEvidence, too_short


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
    """B: what matches paid for their end, against the weight of a win and the largest reward that arrived."""
    weights = _win_weights(run)
    due = _due_by_step(run, min((one for one in weights if one), default=0.0))
    booked = _booked_wins(run) if max(weights) else []
    arrived = run.at_steps("reward/largest")
    met = [(arrived[step], due[step]) for step in due if step in arrived and due[step] > 0.0]
    if len(met) < FEWEST_UPDATES and not booked:
        return too_short("B", f"{len(met)} updates in which a match was won or lost")
    short = [one for one in booked if min(abs(one - weight) for weight in weights) > 0.01 * max(weights)]
    cut = [came for came, wanted in met if came < 0.5 * wanted]
    said = f"a win or loss paid {median(booked):.4g} by the accounts" if booked else "wins have no weight"
    if met:
        said += f"; {median(w for _, w in met):.3g} was due at the end of a match, at most "
        said += f"{median(c for c, _ in met):.3g} arrived"
    return judged(
        "B",
        f"{said} (weights {', '.join(f'{w:g}' for w in sorted(weights))})",
        failure=2 * len(short) > len(booked) or 2 * len(cut) > len(met),
        fix="clip no reward on its way: learner.normalize_returns scales wins and steps alike",
    )


def _win_weights(run: RunEvidence) -> set[float]:
    """Size of a win's weight, by stage; 0 where the game has no such term."""
    terms, settings = run.set_up.spec.reward_terms, run.set_up.settings
    if "win" not in terms:
        return {0.0}
    place = terms.index("win")
    return {float(abs(stage_rewards(settings, stage)[place])) for stage in settings.curriculum.stages}


def _booked_wins(run: RunEvidence) -> list[float]:
    """The term `win` of updates whose matches all ended alike; the others' mean tells no size."""
    scores: dict[str, set[float]] = defaultdict(set)
    for row in run.matches:
        scores[row["step"]].add(float(row["score"]))
    alike = [row for row in run.rewards if scores.get(row["step"]) in ({0.0}, {1.0})]
    return [abs(float(row["win"])) for row in alike]


def _due_by_step(run: RunEvidence, win: float) -> dict[int, float]:
    """By update, the least that must have arrived in one step: a win's weight, or the largest payoff."""
    terms = zip(run.set_up.spec.reward_terms, run.set_up.weights_K, strict=True)
    all_at_the_end = all(term in OUTCOME_TERMS for term, weight in terms if weight)
    due: dict[int, float] = {}
    for row in run.matches:
        step, decided = int(row["step"]), float(row["score"]) != 0.5
        paid = abs(float(row["r"])) if all_at_the_end else win * decided
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
