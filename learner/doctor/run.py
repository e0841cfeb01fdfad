"""What a run folder's files show: the learner's scalars and tables, its newest checkpoint, matches.

Most checks look at the newest fifth of the run, for what was so at the start need not stay so. The
probe (`learner.doctor.training`) judges what the newest weights show.
Alarms that the learner raises while it runs come from the same rules, `league.runs.alarms`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from league.errors import NotFound
from league.players import PayoffCell, Role
from league.runs.alarms import (
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
from league.settings.base import Sections, lay_over, resolve
from learner.doctor.findings import Finding, judged, unknown
from learner.doctor.game import CLIPPED, imbalance
from learner.doctor.setup import SetUp, set_up_of
from learner.doctor.training import STUCK, optimizer_steps
from learner.settings import LearnerSettings
from learner.train.checkpoint import CheckpointFolder, Values

FEWEST_UPDATES, FEWEST_MATCHES = 10, 40
"""Fewer show nothing."""
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

    def scalar(self, tag: str) -> list[float]:
        """A tag's values in the order of steps."""
        return self.scalars[tag].values.tolist() if tag in self.scalars else []

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
    sections = resolve(None, config, environment={})
    # A learner that was started by hand is not listed; all exploiters take the same settings.
    role = Role.MAIN_EXPLOITER if generations else Role.MAIN
    for entry in sections.of(SupervisorSettings).learners:
        if entry.name == name:
            sections = resolve(None, config, entry.set, environment={})
            role = Role(entry.role)
    settings = sections.of(LearnerSettings)
    set_up = _set_up(sections, saved, scalars, role)
    stage_start = 0 if saved is None else int(saved["curriculum"]["since_step"])
    weights = dict(zip(set_up.spec.reward_terms, set_up.weights_K.tolist(), strict=True))
    watch = AlarmWatch(
        largest_entropy(set_up.spec.action_kind, set_up.spec.action_size),
        settings.desired_kl,
    )
    for update in read_updates(learner, lambda step: weights if step > stage_start else {}):
        watch.update(update)
    return RunEvidence(
        scalars=scalars,
        matches=read_rows(learner / "monitor.csv"),
        rewards=read_rows(learner / "reward_breakdown.csv"),
        clean=tuple(clean),
        set_up=set_up,
        learner=settings,
        step=0 if saved is None else int(saved["algorithm"]["num_timesteps"]),
        stage_start=stage_start,
        alarms=tuple(watch.active.values()),
    )


def _set_up(
    sections: Sections, saved: Values | None, scalars: Mapping[str, Series], role: Role
) -> SetUp:
    """The run's current set-up: stage, step size, clip and weights of its newest checkpoint."""
    if saved is None:
        return set_up_of(sections, role=role)
    now = dict(sections["learner"])
    if "learning/rate" in scalars:
        now["learning_rate"] = float(scalars["learning/rate"].values[-1])
        now["learning_rate_final"] = None
    if "policy/clip_range" in scalars:
        now["clip_range"] = float(scalars["policy/clip_range"].values[-1])
    sections = lay_over({**sections, "learner": now})
    weights = saved["algorithm"]["network"]

    def loaded(agent: AgentConfig) -> AgentNetwork:
        network = AgentNetwork(agent)
        network.load_state_dict(weights)
        return network

    return replace(set_up_of(sections, saved["curriculum"]["index"], role), network=loaded)


def judge_run(run: RunEvidence) -> list[Finding]:
    """Every reason that a run's files can be judged by."""
    return [*_policy(run), *_critic(run), *_rewards(run), *_results(run)]


def _policy(run: RunEvidence) -> Iterator[Finding]:
    """E, 16 and 18: entropy, and how far updates move the policy."""
    entropies, kls = run.scalar("policy/entropy"), run.scalar("policy/approx_kl")
    if min(len(entropies), len(kls)) < FEWEST_UPDATES:
        for key in ("E", "16", "18"):
            yield _too_short(key, f"{len(entropies)} updates")
        return
    learner, late = run.learner, run.late("policy/approx_kl")
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
        f"entropy {entropies[0]:.3g} at first, {now:.3g} now: {now / run.largest_entropy:.0%} of "
        "the largest" + (", gone in one update (E)" if broke else ""),
        # where one update took it, the update is to blame and not the entropy's weight
        failure=bool(run.alarms_of("entropy_collapse")) and not broke,
        warning=now < ENTROPY_LOW * run.largest_entropy and not broke,
        fix="raise learner.ent_coef and learner.ent_coef_final, and start from an older snapshot "
        "(--from)",
    )
    stuck = max(kls) < STUCK and optimizer_steps(learner) > 1  # a first step's KL is 0
    yield judged(
        "16",
        f"updates move the policy by a KL of {median(late):.2g} (largest of all {max(kls):.2g})",
        failure=median(late) > 2.0 * KL_LARGEST or max(kls) > OVERSHOT or stuck,
        warning=median(late) > KL_LARGEST or bool(run.alarms_of("kl_too_high")),
        fix=f"{'raise' if stuck else 'lower'} learner.learning_rate tenfold",
    )


def _too_short(key: str, what: str) -> Finding:
    return unknown(key, f"too little to judge: {what}")


def _critic(run: RunEvidence) -> Iterator[Finding]:
    """V: explained variance."""
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


def _rewards(run: RunEvidence) -> Iterator[Finding]:
    """9, B and A: what matches paid, whether wins arrived, and the scale of rewards."""
    rows = run.rewards[-max(10, len(run.rewards) // 5) :]
    matches = sum(int(row["matches"]) for row in rows)
    if matches < FEWEST_MATCHES:
        yield _too_short("9", f"{matches} matches")
    else:
        terms = run.set_up.spec.reward_terms
        means = {term: fmean(abs(float(row.get(term, 0.0))) for row in rows) for term in terms}
        silent = [alarm.subject for alarm in run.alarms_of("term_silent")]
        weighted = int((run.set_up.weights_K != 0.0).sum())
        yield imbalance(*largest_share(means), weighted, silent, OUTCOME_TERMS)
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


def _wins(run: RunEvidence) -> Finding:
    """B: what this stage's matches owed for their end, against the largest reward that arrived.

    The largest reward of a step is logged with the update after the one that counts its matches.
    """
    terms = dict(zip(run.set_up.spec.reward_terms, run.set_up.weights_K.tolist(), strict=True))
    at_the_end = all(term in OUTCOME_TERMS for term, weight in terms.items() if weight)
    due: dict[int, float] = defaultdict(float)
    for row in run.matches:
        step, weight = int(row["step"]), abs(terms.get("win", 0.0))
        if step > run.stage_start:
            owed = abs(float(row["r"])) if at_the_end else weight * (float(row["score"]) != 0.5)
            due[step] = max(due[step], owed)
    largest = run.scalars.get("reward/largest")
    steps = [] if largest is None else largest.steps.tolist()
    following = dict(zip(steps, run.scalar("reward/largest")[1:], strict=False))
    arrived = [(following[step], owed) for step, owed in due.items() if owed and step in following]
    if len(arrived) < FEWEST_UPDATES:
        return _too_short("B", f"{len(arrived)} updates in which a match was won or lost")
    came, owed = (median(values) for values in zip(*arrived, strict=True))
    cut = sum(came < 0.5 * owed for came, owed in arrived)
    said = f"{owed:.3g} was due in one step, {came:.3g} arrived"
    return judged("B", said, failure=2 * cut > len(arrived), fix=CLIPPED)


def _results(run: RunEvidence) -> Iterator[Finding]:
    """W and 14: one-sided results, and training results that exceed clean ones."""
    recent, scores = run.matches[-500:], defaultdict[str, list[float]](list)
    for row in recent:
        scores[row["opponent"].partition("@")[0]].append(float(row["score"]))
    met = {name: each for name, each in scores.items() if len(each) >= FEWEST_MATCHES // 2}
    if not met:
        yield _too_short("W", f"{len(recent)} matches")
    else:
        exact = all(set(each) in ({0.0}, {1.0}) for each in met.values())
        entropy = fmean(run.late("policy/entropy") or [run.largest_entropy])
        yield judged(
            "W",
            f"scores in the newest {len(recent)} matches: "
            + ", ".join(f"{name} {fmean(each):.0%}" for name, each in met.items()),
            failure=exact and entropy < ENTROPY_LOW * run.largest_entropy,
            warning=bool(run.alarms_of("never_won", "always_won")),
            fix="stronger opponents (matchmaker.mixes)"
            if run.alarms_of("always_won")
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
    name = max(gaps, key=gaps.__getitem__)
    yield judged(
        "14",
        f"training scores exceed clean ones by at most {gaps[name]:.0%} ({name})",
        warning=gaps[name] > 0.3,
        fix="meet more opponents (matchmaker.mixes), or choose a smaller agent.size",
    )


def _step(name: str) -> int:
    step = name.rpartition("@")[2]
    return int(step) if step.isdigit() else -1
