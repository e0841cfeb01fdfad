"""What a run folder's files show: the learner's scalars and tables, its newest checkpoint, matches.

Most checks look at the newest fifth of the run, for what was so at the start need not stay so.
Alarms that the learner raises while it runs come from the same rules, `league.runs.alarms`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path
from statistics import fmean, median

from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from league.errors import NotFound
from league.players import PayoffCell, Role
from league.runs.alarms import (
    DOMINANT_SHARE,
    ENTROPY_LOW,
    EXPLAINED_VARIANCE,
    KL_LARGEST,
    OUTCOME_TERMS,
    Alarm,
    AlarmWatch,
    largest_entropy,
    largest_share,
)
from league.runs.records import Row, Series, read_rows, read_scalars, read_updates
from league.runs.settings import SupervisorSettings
from league.settings.base import Sections, resolve
from learner.doctor.checks import ALONE, EXPLODED, STUCK
from learner.doctor.findings import Finding, judged, unknown
from learner.doctor.probe import optimizer_steps
from learner.doctor.setup import SetUp, set_up_of
from learner.ppo.optimizer import SMALLEST_RATE
from learner.settings import LearnerSettings
from learner.train.checkpoint import CheckpointFolder, Values

FEWEST_UPDATES, FEWEST_MATCHES = 10, 40
"""Fewer show nothing."""
MISREAD_KL, MISREAD_SHARE = 1e-3, 0.2
"""KL divergence at which an update begins, and its share of the whole update's. It is not exactly
0: the actor's memory of the rollout before was computed with the weights of then."""
OVERSHOT = 1.0
"""KL divergence of one update after which nothing that is measured says more than that."""
BROKE = 0.3
"""Share of the entropy that an update must leave: a healthy one leaves over 90 %."""


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """One learner's files.

    Attributes:
        scalars: TensorBoard's values by tag.
        matches: rows of monitor.csv.
        rewards: rows of reward_breakdown.csv, one for each update.
        clean: clean matches of this learner's snapshots against each opponent.
        set_up: the run's settings with the newest checkpoint's network, step size and clip.
        learner: the settings in the run's file.
        step: of that checkpoint, 0 when there is none.
        stage_start: step at which its stage began.
        alarms: those that were on at the end, found from the files alone.
    """

    scalars: Mapping[str, Series]
    matches: Sequence[Row]
    rewards: Sequence[Row]
    clean: Sequence[PayoffCell]
    set_up: SetUp
    learner: LearnerSettings
    step: int
    stage_start: int
    alarms: Sequence[Alarm]

    def at_steps(self, tag: str) -> dict[int, float]:
        """A tag's values by learner step."""
        if tag not in self.scalars:
            return {}
        series = self.scalars[tag]
        return dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))

    def scalar(self, tag: str) -> list[float]:
        return list(self.at_steps(tag).values())

    def late(self, tag: str) -> list[float]:
        """The last fifth of a tag's values, at least ten if there are ten."""
        values = self.scalar(tag)
        return values[-max(10, len(values) // 5) :]

    def alarms_of(self, *kinds: str) -> list[Alarm]:
        return [alarm for alarm in self.alarms if alarm.kind in kinds]

    @property
    def largest_entropy(self) -> float:
        """Entropy of uniform play, in nats."""
        return largest_entropy(self.set_up.spec.action_kind, self.set_up.spec.action_size)


def read_run(folder: Path, name: str = "main", clean: Sequence[PayoffCell] = ()) -> RunEvidence:
    """Reads one learner of a run.

    Raises:
        NotFound: there is nothing to read yet.
        ConfigError: the run's settings can't be used.
        DataCorrupt: a file can't be read.
    """
    learner, config = folder / f"learner-{name}", folder / "config.toml"
    if not config.is_file():
        raise NotFound(f"{folder} has no config.toml: name the folder of a run with --run-dir")
    if not learner.is_dir():
        raise NotFound(
            f"{folder} has no learner-{name} yet: wait for its first update, or name another"
        )
    generations = sorted(
        learner.glob("generation-*"), key=lambda place: int(place.name.rpartition("-")[2])
    )
    newest = generations[-1] if generations else learner
    saved = CheckpointFolder(newest / "checkpoints").read_newest()
    scalars = read_scalars(learner / "tensorboard")
    sections, role = _settings(config, name, exploits=bool(generations))
    settings = sections.of(LearnerSettings)
    set_up = _set_up(sections, saved, scalars, role)
    stage_start = 0 if saved is None else int(saved["curriculum"]["since_step"])
    return RunEvidence(
        scalars=scalars,
        matches=read_rows(learner / "monitor.csv"),
        rewards=read_rows(learner / "reward_breakdown.csv"),
        clean=tuple(clean),
        set_up=set_up,
        learner=settings,
        step=0 if saved is None else int(saved["algorithm"]["num_timesteps"]),
        stage_start=stage_start,
        alarms=_alarms(learner, set_up, stage_start),
    )


def _settings(config: Path, name: str, exploits: bool) -> tuple[Sections, Role]:
    """The run's settings with the learner's own over them, and its role."""
    sections = resolve(None, config, environment={})
    for entry in sections.of(SupervisorSettings).learners:
        if entry.name == name:
            return resolve(None, config, entry.set, environment={}), Role(entry.role)
    # A learner that was started by hand; both kinds of exploiters take the same settings.
    return sections, Role.MAIN_EXPLOITER if exploits else Role.MAIN


def _set_up(
    sections: Sections, saved: Values | None, scalars: Mapping[str, Series], role: Role
) -> SetUp:
    """The run's current set-up: stage, step size, clip and weights of its newest checkpoint."""
    if saved is None:
        return set_up_of(sections, role=role)
    if "learning/rate" in scalars:
        rate = float(scalars["learning/rate"].values[-1])
        sections["learner"] |= {"learning_rate": rate, "learning_rate_final": None}
    if "policy/clip_range" in scalars:
        sections["learner"]["clip_range"] = float(scalars["policy/clip_range"].values[-1])
    weights = saved["algorithm"]["network"]

    def loaded(agent: AgentConfig) -> AgentNetwork:
        network = AgentNetwork(agent)
        network.load_state_dict(weights)
        return network

    return replace(set_up_of(sections, saved["curriculum"]["index"], role), network=loaded)


def _alarms(learner: Path, set_up: SetUp, stage_start: int) -> tuple[Alarm, ...]:
    """The alarms that the learner's own watch would have on now, had it seen the whole stage."""
    spec, settings = set_up.spec, set_up.settings.learner
    weights = dict(zip(spec.reward_terms, set_up.weights_K.tolist(), strict=True))
    watch = AlarmWatch(
        largest_entropy(spec.action_kind, spec.action_size),
        settings.desired_kl or settings.target_kl,
    )
    for update in read_updates(learner, lambda step: weights if step > stage_start else {}):
        watch.update(update)
    return tuple(watch.active.values())


def judge_run(run: RunEvidence) -> list[Finding]:
    """Every reason that a run's files can be judged by."""
    return [*_policy(run), *_critic(run), *_rewards(run), *_results(run)]


def _too_short(key: str, what: str) -> Finding:
    return unknown(key, f"too little to judge: {what}")


def _policy(run: RunEvidence) -> Iterator[Finding]:
    """E, 15, 16, 18 and 20: entropy, and how far updates move the policy."""
    entropies, kls = run.scalar("policy/entropy"), run.scalar("policy/approx_kl")
    if min(len(entropies), len(kls)) < FEWEST_UPDATES:
        yield from (
            _too_short(key, f"{len(entropies)} updates") for key in ["E", "15", "16", "18", "20"]
        )
        return
    learner, most, late = run.learner, run.largest_entropy, run.late("policy/approx_kl")
    falls = [(b / a, number) for number, (a, b) in enumerate(pairwise(entropies), 1) if a > 1e-9]
    left, worst = min(falls, default=(1.0, 0))
    yield judged(
        "E",
        f"the worst update (number {worst}) left {left:.0%} of the entropy; largest KL "
        f"{max(kls):.2g}",
        failure=left < BROKE,
        warning=left < 0.5,
        fix="continue from a snapshot before it (--from) with desired_kl = 0.012 or a lower "
        "learning_rate",
    )
    now, broke = fmean(run.late("policy/entropy")), left < BROKE
    yield judged(
        "18",
        f"entropy {entropies[0]:.3g} at first, {now:.3g} now: {now / most:.0%} of the largest"
        + (", gone in one update (E)" if broke else ""),
        # where one update took it, the update is to blame and not the entropy's weight
        failure=bool(run.alarms_of("entropy_collapse")) and not broke,
        warning=now < ENTROPY_LOW * most and not broke,
        fix="raise learner.ent_coef and learner.ent_coef_final, and start from an older snapshot "
        "(--from)",
    )
    apart = median(run.late("policy/first_kl") or [0.0])
    yield judged(
        "15",
        f"an update begins at a KL of {apart:.1g} from the policy that acted",
        failure=not apart < MISREAD_KL and apart > MISREAD_SHARE * median(late),
        fix="let step and unroll of the agent clear and carry the same state",
    )
    stuck = max(kls) < STUCK and optimizer_steps(learner) > 1  # a first step's KL is 0
    yield judged(
        "16",
        f"updates move the policy by a KL of {median(late):.2g} (largest of all {max(kls):.2g})",
        failure=median(late) > 2.0 * KL_LARGEST or max(kls) > OVERSHOT or stuck,
        warning=median(late) > KL_LARGEST or bool(run.alarms_of("kl_too_high")),
        fix=f"{'raise' if stuck else 'lower'} learner.learning_rate tenfold",
    )
    clipped, rate = fmean(run.late("policy/clip_fraction")), fmean(run.late("learning/rate"))
    hit = learner.target_kl is not None and median(late) > 0.9 * learner.target_kl
    floored = learner.desired_kl is not None and rate < 1.01 * SMALLEST_RATE * learner.learning_rate
    yield judged(
        "20",
        f"{clipped:.0%} of ratios clipped while KL is {fmean(late):.1g}; rate {rate:.1g}"
        + (f"; target_kl {learner.target_kl:g} is hit" if hit else ""),
        failure=clipped > 0.5 and fmean(late) < 0.01,
        warning=hit or floored,
        fix="raise learner.desired_kl"
        if floored
        else "raise learner.clip_range (0.2), target_kl (0.03)",
    )


def _critic(run: RunEvidence) -> Iterator[Finding]:
    """V and 12: explained variance, and the gradient's norm before clipping."""
    explained = run.late("value/explained_variance")
    if len(explained) < FEWEST_UPDATES:
        yield _too_short("V", f"{len(explained)} updates")
    else:
        now, best = median(explained), max(run.scalar("value/explained_variance"))
        yield judged(
            "V",
            f"explained variance {now:.2f} now, {best:.2f} at best",
            failure=bool(run.alarms_of("value_unexplained")) or math.isnan(now),
            warning=now < EXPLAINED_VARIANCE or (now < 0.05 and best > 0.3),
            fix="the critic knows less than a mean: look at the rewards (6 to 8), lower "
            "learner.learning_rate",
        )
    # An update that moves the policy this far spoils every gradient after it, and its own mean.
    kls = run.scalar("policy/approx_kl")
    sound = len(list(takewhile(lambda kl: kl <= OVERSHOT, kls)))
    norms = run.scalar("learning/gradient_norm")[: sound if sound < len(kls) else None]
    if len(norms) < FEWEST_UPDATES:
        said = f"{len(norms)} updates"
        yield _too_short("12", said + (" before one went too far (16)" if sound < len(kls) else ""))
        return
    usual = median(norms[-max(10, len(norms) // 5) :])
    yield judged(
        "12",
        f"norm {usual:.3g} before clipping, {max(norms):.3g} at most",
        failure=bool(run.alarms_of("not_finite")) or not usual <= EXPLODED,
        warning=max(norms) > EXPLODED,
        fix="set learner.normalize_returns = true, or lower the rewards' weights",
    )


def _rewards(run: RunEvidence) -> Iterator[Finding]:
    """9, 6, B and A: what matches paid, whether wins arrived, and the scale of rewards."""
    rows = run.rewards[-max(10, len(run.rewards) // 5) :]
    matches = sum(int(row["matches"]) for row in rows)
    if matches < FEWEST_MATCHES:
        yield _too_short("9", f"{matches} matches")
    else:
        yield _components(run, rows)
    paid = [abs(float(row["r"])) for row in run.matches]
    if not paid:
        yield _too_short("6", "no match has ended")
    else:
        yield judged(
            "6",
            f"{sum(one > 0.0 for one in paid)} of {len(paid)} matches paid anything",
            failure=max(paid) == 0.0,
            fix="give a reward term a weight that is not 0 (game.reward, game.reward_weights)",
        )
    yield _wins(run)
    scale = run.scalar("reward/scale")
    if len(scale) < 2 * FEWEST_UPDATES:
        yield _too_short("A", f"{len(scale)} updates")
        return
    half = scale[len(scale) // 2 :]
    drift = max(half) / max(min(half), 1e-12)
    yield judged(
        "A",
        f"rewards are divided by {half[0]:.3g} at half time, {half[-1]:.3g} now: a factor of "
        f"{drift:.2f}",
        failure=drift > 10.0,
        warning=drift > 3.0,
        fix="keep reward weights of one size from stage to stage (a preset that anneals changes "
        "them)",
    )


def _components(run: RunEvidence, rows: Sequence[Row]) -> Finding:
    terms = run.set_up.spec.reward_terms
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


def _wins(run: RunEvidence) -> Finding:
    """B: what this stage's matches paid for their end, against a win's weight and what arrived.

    An update's largest reward is logged a rollout later than its own matches.
    """
    terms = dict(zip(run.set_up.spec.reward_terms, run.set_up.weights_K.tolist(), strict=True))
    weight = terms.get("win", 0.0)
    all_at_the_end = all(term in OUTCOME_TERMS for term, value in terms.items() if value)
    scores: dict[int, list[float]] = defaultdict(list)
    due: dict[int, float] = {}
    for row in run.matches:
        step, score = int(row["step"]), float(row["score"])
        scores[step].append(score)
        least = abs(float(row["r"])) if all_at_the_end else abs(weight) * (score != 0.5)
        if step > run.stage_start:
            due[step] = max(due.get(step, 0.0), least)
    booked = []
    for row in run.rewards if weight else ():
        step = int(row["step"])
        if step in scores and step > run.stage_start:
            wanted = weight * (2.0 * fmean(scores[step]) - 1.0)
            booked += [(float(row["win"]), wanted)] if wanted else []
    largest = run.at_steps("reward/largest")
    steps = sorted(largest)
    logged = ((bisect_right(steps, step), wanted) for step, wanted in due.items() if wanted > 0.0)
    arrived = [(largest[steps[at]], wanted) for at, wanted in logged if at < len(steps)]
    if len(arrived) < FEWEST_UPDATES and not booked:
        return _too_short("B", f"{len(arrived)} updates in which a match was won or lost")
    said = []
    if booked:
        squares = sum(wanted**2 for _, wanted in booked)
        mean = abs(weight) * sum(paid * wanted for paid, wanted in booked) / squares
        said.append(f"a win or loss paid {mean:.4g} by the accounts (weight {weight:g})")
    if arrived:
        came, wanted = (median(values) for values in zip(*arrived, strict=True))
        said.append(f"{wanted:.3g} was due in one step, {came:.3g} arrived")
    short = sum(abs(paid - wanted) > 0.01 * abs(weight) for paid, wanted in booked)
    cut = sum(came < 0.5 * wanted for came, wanted in arrived)
    return judged(
        "B",
        "; ".join(said),
        failure=2 * short > len(booked) or 2 * cut > len(arrived),
        fix="clip no reward on its way: learner.normalize_returns scales wins and steps alike",
    )


def _results(run: RunEvidence) -> Iterator[Finding]:
    """W and 14: one-sided results, and training results that exceed clean ones."""
    recent = run.matches[-500:]
    scores: dict[str, list[float]] = defaultdict(list)
    for row in recent:
        scores[row["opponent"].partition("@")[0]].append(float(row["score"]))
    met = {name: each for name, each in scores.items() if len(each) >= FEWEST_MATCHES // 2}
    if not met:
        yield _too_short("W", f"{len(recent)} matches")
    else:
        exact = all(set(each) in ({0.0}, {1.0}) for each in met.values())
        entropy = fmean(run.late("policy/entropy") or [run.largest_entropy])
        alarms = run.alarms_of("never_won", "always_won")
        yield judged(
            "W",
            f"scores in the newest {len(recent)} matches: "
            + ", ".join(f"{name} {fmean(each):.0%}" for name, each in met.items()),
            failure=exact and entropy < ENTROPY_LOW * run.largest_entropy,
            warning=bool(alarms),
            fix="stronger opponents (matchmaker.mixes)"
            if any(alarm.kind == "always_won" for alarm in alarms)
            else "an easier mix or a reward on the way; without entropy play repeats itself: raise "
            "ent_coef",
        )
    trained: dict[str, list[float]] = defaultdict(list)
    for row in run.matches[-1000:]:
        trained[row["opponent"]].append(float(row["score"]))
    newest = max((_step(cell.row) for cell in run.clean), default=-1)
    gaps = {
        cell.column: fmean(trained[cell.column]) - (cell.wins + 0.5 * cell.draws) / cell.games
        for cell in run.clean
        if _step(cell.row) == newest
        and len(trained[cell.column]) >= FEWEST_MATCHES
        and cell.games >= FEWEST_MATCHES // 2
    }
    if not gaps:
        yield unknown("14", "no opponent with enough matches both in training and clean")
        return
    name = max(gaps, key=lambda one: gaps[one])
    yield judged(
        "14",
        f"training scores exceed clean ones by at most {gaps[name]:.0%} ({name})",
        warning=gaps[name] > 0.3,
        fix="meet more opponents (matchmaker.mixes), or choose a smaller agent.size",
    )


def _step(name: str) -> int:
    step = name.rpartition("@")[2]
    return int(step) if step.isdigit() else -1
