"""Judges a run by the learner's files: scalars, tables, and the newest checkpoint.

Most checks look at the newest fifth of the run, because a fault at the start of the run may be
over. A short training (`learner.doctor.training`) judges the newest weights. The learner's alarms
are recomputed from its files, by the rules that the learner itself uses (`league.runs.alarms`).

Clean matches are matches that the evaluator plays only to measure. No learner trains on them.
Numbers and letters such as 14 or E are keys of reasons in `learner.doctor.findings.REASONS`.
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
from league.players import Book, Role
from league.runs.alarms import (
    ENTROPY_LOW,
    ENTROPY_SHARE,
    EXPLAINED_VARIANCE,
    KL_BROKE,
    KL_LARGEST,
    Alarm,
    AlarmWatch,
    largest_entropy,
)
from league.runs.records import Series, read_rows, read_scalars, read_updates
from league.runs.settings import SupervisorSettings
from league.settings.base import lay_over, resolve
from learner.doctor.findings import Finding, judged, unknown
from learner.doctor.game import ALONE
from learner.doctor.setup import SetUp, set_up_of
from learner.doctor.training import STUCK, optimizer_steps
from learner.train.checkpoint import CheckpointFolder

FEWEST_UPDATES, FEWEST_MATCHES = 20, 40
"""Fewest updates and matches from which the checks can conclude anything."""
BROKE = 0.3
"""Smallest share of the policy's entropy that must be left after an update. After a healthy update,
over 90 % is left.
"""
BY_ALARM = {
    "9": ("no term is silent or carries the whole reward", "term_dominates", "term_silent"),
    "C": ("no value was clipped to its bounds", "clipped"),
    "W": ("no opponent always wins, and not every match is won", "never_won", "always_won"),
}
"""The reasons that are judged by alarms alone. Each reason has the sentence to report if no alarm
is on, followed by the kinds of alarms that belong to the reason."""


@dataclass(frozen=True, kw_only=True)
class RunEvidence:
    """Holds the evidence that a learner's files give.

    Attributes:
        set_up: the run's settings, with the curriculum stage and the network of the newest
            checkpoint, and with the newest learning rate and clip range.
        step: the newest checkpoint's step, or 0 if there is no checkpoint.
        scalars: TensorBoard's values by tag.
        alarms: alarms that were on at the end.
        flattered: for each opponent, the score in training matches minus the score in clean
            matches, which only measure.
    """

    set_up: SetUp
    step: int
    scalars: Mapping[str, Series]
    alarms: Sequence[Alarm]
    flattered: Mapping[str, float]

    def scalar(self, tag: str) -> list[float]:
        """Returns a tag's values in the order of steps."""
        return self.scalars[tag].values.tolist() if tag in self.scalars else []

    def late(self, tag: str) -> list[float]:
        """Returns the last fifth of a tag's values, but not fewer than the last ten values."""
        values = self.scalar(tag)
        return values[-max(10, len(values) // 5) :]

    @property
    def updates(self) -> int:
        """How many updates the learner has written."""
        return len(self.scalar("policy/approx_kl"))

    @property
    def too_early(self) -> str:
        """Says that the run has too few updates to be judged, or ""."""
        if self.updates >= FEWEST_UPDATES:
            return ""
        return f"too early to judge the run: {self.updates} of at least {FEWEST_UPDATES} updates"

    def restart(self, update: int) -> str:
        """Says from where to train again if the policy was last well before an update (from 1)."""
        step = int(self.scalars["policy/approx_kl"].steps[update - 2]) if update > 1 else 0
        if step < self.set_up.settings.learner.snapshot_interval:
            return f"start a new run: no snapshot is older than update {update}"
        return f"continue from a snapshot of step {step:,} or before (--from)"

    def has_alarm(self, kind: str) -> bool:
        return any(alarm.kind == kind for alarm in self.alarms)


def read_run(folder: Path, name: str = "main") -> RunEvidence:
    """Reads the learner `name` of a run.

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
        learner.glob("generation-*"), key=lambda path: int(path.name.rpartition("-")[2])
    )
    newest = generations[-1] if generations else learner
    saved = CheckpointFolder(newest / "checkpoints").read_newest()
    scalars = read_scalars(learner / "tensorboard")
    sections = resolve(None, config, environment={})
    # The settings don't list a learner that was started by hand. If it has generations, it is an
    # exploiter. Both kinds of exploiters have the same settings, so either role will do.
    role = Role.MAIN_EXPLOITER if generations else Role.MAIN
    for entry in sections.of(SupervisorSettings).learners:
        if entry.name == name:
            sections = resolve(None, config, entry.set, environment={})
            role = Role(entry.role)
    now, step, stage, stage_start = dict(sections["learner"]), 0, 0, 0
    if saved is not None:
        step, stage = int(saved["algorithm"]["num_timesteps"]), saved["curriculum"]["index"]
        stage_start = int(saved["curriculum"]["since_step"])
        if "learning/rate" in scalars:
            now["learning_rate"] = float(scalars["learning/rate"].values[-1])
            now["learning_rate_final"] = None
        if "policy/clip_range" in scalars:
            now["clip_range"] = float(scalars["policy/clip_range"].values[-1])
    set_up = set_up_of(lay_over({**sections, "learner": now}), stage, role)
    if saved is not None:

        def loaded(agent: AgentConfig) -> AgentNetwork:
            network = AgentNetwork(agent)
            network.load_state_dict(saved["algorithm"]["network"])
            return network

        set_up = replace(set_up, network=loaded)
    weights = dict(zip(set_up.spec.reward_terms, set_up.weights_K.tolist(), strict=True))
    watch = AlarmWatch(
        largest_entropy(set_up.spec.action_kind, set_up.spec.action_size),
        set_up.settings.learner.desired_kl,
    )
    for update in read_updates(learner, lambda step: weights if step > stage_start else {}):
        watch.update(update)
    return RunEvidence(
        set_up=set_up,
        step=step,
        scalars=scalars,
        alarms=tuple(watch.active.values()),
        flattered=_flattered(folder, name),
    )


def _flattered(folder: Path, name: str) -> dict[str, float]:
    """Compares a learner's newest 1,000 training matches with its clean matches (which only
    measure), by opponent.
    """
    trained: dict[str, list[float]] = defaultdict(list)
    for row in read_rows(folder / f"learner-{name}" / "monitor.csv")[-1000:]:
        trained[row["opponent"]].append(float(row["score"]))
    clean = [
        row
        for row in read_rows(folder / "evaluator" / "evaluation_results.csv")
        if row["book"] == Book.EVAL and row["player"].startswith((f"{name}@", f"{name}."))
    ]
    newest = max((int(row["step"]) for row in clean), default=0)
    above = {}
    for row in clean:
        scores, matches = trained[row["opponent"]], int(row["matches"])
        enough = len(scores) >= FEWEST_MATCHES and matches >= FEWEST_MATCHES // 2
        if enough and int(row["step"]) == newest:
            clean_score = (int(row["wins"]) + 0.5 * int(row["draws"])) / matches
            above[row["opponent"]] = fmean(scores) - clean_score
    return above


def judge_run(run: RunEvidence) -> Iterator[Finding]:
    """Judges reasons 9, 14, 16, 18, A, C, E, V and W: every reason that shows in a run's files."""
    for key, (healthy, *kinds) in BY_ALARM.items():
        on = [alarm for alarm in run.alarms if alarm.kind in kinds]
        measured, _, fix = on[0].sentence.partition(": ") if on else (healthy, "", "")
        whole = any(alarm.kind == "term_dominates" and alarm.value > ALONE for alarm in on)
        yield judged(key, measured, failure=whole, warning=bool(on), fix=fix, since=run.updates)
    if run.flattered:
        name = max(run.flattered, key=run.flattered.__getitem__)
        yield judged(
            "14",
            f"training scores exceed clean ones by at most {run.flattered[name]:.0%} ({name})",
            warning=run.flattered[name] > 0.3,
            fix="meet more opponents (matchmaker.mixes), or choose a smaller agent.size",
        )
    if run.too_early:
        for key in ("A", "E"):  # the short training judges the other reasons
            yield unknown(key, run.too_early)
        if max(run.scalar("policy/approx_kl"), default=0.0) > KL_BROKE:  # an early end is no excuse
            yield _moves(run)
        return
    yield from _policy(run, run.scalar("policy/entropy"))
    now = median(run.late("value/explained_variance"))
    best = max(run.scalar("value/explained_variance"))
    yield judged(
        "V",
        f"explained variance {now:.2f} now, {best:.2f} at best",
        failure=run.has_alarm("value_unexplained") or math.isnan(now),
        warning=now < EXPLAINED_VARIANCE or (now < 0.05 and best > 0.3),
        fix="the critic knows less than a mean: look at the rewards (6 to 8), lower "
        "learner.learning_rate",
        since=run.updates,
    )
    scale = run.scalar("reward/scale")
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
        since=run.updates // 2,
    )


def _policy(run: RunEvidence, entropies: list[float]) -> Iterator[Finding]:
    """Judges reasons E, 16 and 18: entropy, and how far updates move the policy."""
    falls = [(b / a, number) for number, (a, b) in enumerate(pairwise(entropies), 1) if a > 1e-9]
    left, worst = min(falls, default=(1.0, 0))
    yield judged(
        "E",
        f"the worst update (number {worst}) left {left:.0%} of the entropy; largest KL "
        f"{max(run.scalar('policy/approx_kl')):.2g}",
        failure=left < BROKE,
        warning=left < 0.5,
        fix=f"set desired_kl = 0.012 or a lower learning_rate, and {run.restart(worst)}",
        since=worst,
    )
    spec = run.set_up.spec
    largest = largest_entropy(spec.action_kind, spec.action_size)
    now, since = fmean(run.late("policy/entropy")), _first(entropies, below=ENTROPY_LOW * largest)
    yield judged(
        "18",
        f"entropy {entropies[0]:.3g} at first, {now:.3g} now: {now / largest:.0%} of the largest",
        failure=run.has_alarm("entropy_collapse") or now < ENTROPY_SHARE * largest,
        warning=now < ENTROPY_LOW * largest,
        fix=f"raise learner.ent_coef and learner.ent_coef_final, and {run.restart(since)}",
        since=since,
    )
    yield _moves(run)


def _moves(run: RunEvidence) -> Finding:
    """Judges reason 16: how far updates move the policy. An update of KL `KL_BROKE` moves it before
    the update's own entropy shows this, so its number counts from 0 here.
    """
    kls, late = run.scalar("policy/approx_kl"), median(run.late("policy/approx_kl"))
    broke = max(kls) > KL_BROKE
    stuck = max(kls) < STUCK and optimizer_steps(run.set_up.settings.learner) > 1
    first = _first([-kl for kl in kls], below=-KL_BROKE if broke else -KL_LARGEST)
    fix = f"{'raise' if stuck else 'lower'} learner.learning_rate tenfold"
    return judged(
        "16",
        f"updates move the policy by a KL of {late:.2g} (largest of all {max(kls):.2g}"
        + (f", over {KL_BROKE:g} first in update {first})" if broke else ")"),
        failure=late > 2.0 * KL_LARGEST or broke or stuck,
        warning=late > KL_LARGEST or run.has_alarm("kl_too_high"),
        fix=f"{fix}, and {run.restart(first)}" if broke else fix,
        since=first if stuck else first - 1,
    )


def _first(values: list[float], below: float) -> int:
    """Returns the number, from 1, of the first of `values` that is low, or of the last value."""
    return next((n for n, value in enumerate(values, 1) if value < below), len(values))
