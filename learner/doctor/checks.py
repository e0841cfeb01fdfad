"""The twenty reasons, B, O and V, judged by what was measured of a set-up (docs/doctor.md).

`measure` gathers the evidence once; each function below judges the reasons of one theme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from league.runs.alarms import DOMINANT_SHARE, ENTROPY_LOW, ENTROPY_SHARE, KL_LARGEST
from learner.doctor.findings import Finding, judged, ordered, unknown
from learner.doctor.play import EnvironmentEvidence, GameEvidence, look_at_environment, look_at_game
from learner.doctor.probe import LARGE, ProbeEvidence, optimizer_steps, probe
from learner.doctor.setup import SetUp

WIDEST = 1000
"""Numbers in an observation above which most of them are rarely worth their weights."""
HARDLY_SEEN = 0.3
"""Share of matches: what shows a player's own state twice still differs where the opponent's play
touched it."""
SCALE_FLOOR = 1e-8
"""What the learner's running variance of the return is never below (`ReturnScale`)."""
ALONE = 0.95
NOT_ALIGNED, HARDLY_ALIGNED = 0.5, 0.6
VANISHED, EXPLODED, STILL_LARGE = 1e-6, 100.0, 30.0
STUCK = 1e-7
"""KL divergence below which a policy has not moved at all."""
TOO_FEW, TOO_FEW_LARGE = (0.78, 0.82), (0.56, 0.56)
"""Shares of right answers, failure and warning below; large networks are fitted more shortly."""
MANY_WEIGHTS = 5000.0
"""Weights for each decision of a rollout; below it, learning by heart is only the fault of too
little data."""
COARSE = 0.15
"""Cosine of a minibatch's gradient with the true one, below which it points anywhere."""
MISREAD = 0.05
"""Deviations of the targets by which the learner may read other values than the actor did; rounding
to 16 bits stays below 0.01."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A set-up and what was measured of it."""

    set_up: SetUp
    game: GameEvidence
    environment: EnvironmentEvidence
    probe: ProbeEvidence

    @property
    def reach(self) -> float:
        """Decisions over which the discount still counts: 1 / (1 - gamma)."""
        gamma = self.set_up.settings.learner.gamma
        return math.inf if gamma >= 1.0 else 1.0 / (1.0 - gamma)

    @property
    def held_back(self) -> bool:
        """Whether gradients are clipped below Adam's epsilon, so that its steps shrink."""
        network = self.probe.network
        if network is None:
            return False
        clipped = self.set_up.settings.learner.max_grad_norm / math.sqrt(network.parameters)
        return clipped < 0.1 * network.adam_epsilon


def measure(set_up: SetUp, on_step: Callable[[str], None] = lambda _: None) -> Evidence:
    """Plays, trains a little and looks; calls `on_step` with a description of each step."""
    on_step(f"playing {set_up.spec.name}: what changes, what acts, what repeats, what pays")
    game = look_at_game(set_up)
    on_step("following rewards and ends of matches to the learner")
    environment = look_at_environment(set_up)
    on_step("training for a few updates")
    return Evidence(set_up=set_up, game=game, environment=environment, probe=probe(set_up))


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """Every reason that a set-up can be judged by, in the order of `REASONS`."""
    themes = (_play, _rewards, _components, _opponents, _updates)
    findings = [finding for theme in themes for finding in theme(evidence)]
    if evidence.probe.network is not None:
        return ordered([*findings, *_network(evidence)])
    return ordered(
        [*findings, *(_stopped(evidence, key) for key in ["11", "12", "13", "14", "15", "18"])]
    )


def _stopped(evidence: Evidence, key: str) -> Finding:
    """The finding for a reason whose measurement the training never reached."""
    if not evidence.probe.fault:
        return unknown(key, "no update was made")
    said = f"not measured: {evidence.probe.fault}"
    return judged(key, said, warning=True, fix="fix what stopped the training first")


def _play(evidence: Evidence) -> Iterator[Finding]:
    """1 to 5: what is seen, what acts, what repeats."""
    game = evidence.game
    yield judged(
        "1",
        f"another view after {game.changing_steps:.0%} of decisions; {game.varying_own:.0%} of the "
        f"own numbers and {game.varying_rest:.0%} of the others ever change",
        failure=game.changing_steps < 0.05 or max(game.varying_own, game.varying_rest) == 0.0,
        warning=game.changing_steps < 0.5,
        fix="let the game's step write its new state into observations_N2O",
    )
    dead = [name for name, acts in game.acting.items() if not acts]
    tried = len(game.acting)
    yield judged(
        "2",
        f"{tried - len(dead)} of {tried} actions tried made a difference"
        + (f"; none: {', '.join(dead[:6])}" if dead else ""),
        failure=tried > 0 and len(dead) == tried,
        warning=bool(dead),
        fix="pass the actions on to the game: what does nothing can't be learnt",
    )
    yield judged(
        "3",
        f"{game.repeats:.0%} of matches are equal when played again from their seeds",
        failure=game.repeats < 1.0,
        fix="draw all luck of a match from its seed, and keep nothing between matches or rows",
    )
    seen = game.opponent_seen
    dim = seen is not None and seen < HARDLY_SEEN
    shown = f"; what the opponent does shows in {seen:.0%} of matches" if seen is not None else ""
    yield judged(
        "4",
        f"{game.size} numbers, {game.own_size} of them the own part{shown}",
        failure=seen == 0.0 or game.size > 10 * WIDEST,
        warning=dim or game.size > WIDEST,
        fix="show the opponent's state after the own part"
        if dim
        else "leave out what never matters, or sum it up in fewer numbers",
    )
    yield judged(
        "5",
        f"{1.0 - game.finite_share:.2%} of all numbers are NaN or infinite; the largest is "
        f"{game.largest:.3g}",
        failure=game.finite_share < 1.0,
        warning=game.largest > 1.001,
        fix="bound what is observed: the contract wants finite numbers from -1 to 1",
    )


def _rewards(evidence: Evidence) -> Iterator[Finding]:
    """6 to 8, 19 and B: whether rewards exist, come often enough, in a fit size, and arrive."""
    game, weights_K = evidence.game, evidence.set_up.weights_K
    learner, reach = evidence.set_up.settings.learner, evidence.reach
    fresh_TN = game.fresh.rewards_TN2(weights_K)[..., 0]
    fresh = float((fresh_TN != 0.0)[game.fresh.first_TN].mean())
    bots = float((game.bots.rewards_TN2(weights_K) != 0.0)[game.bots.first_TN].mean())
    yield judged(
        "6",
        f"{int((weights_K != 0.0).sum())} terms have a weight; {fresh:.1%} of decisions at random "
        f"and {bots:.1%} of the bots' pay",
        failure=fresh == 0.0 and bots == 0.0,
        fix="give a reward term a weight that is not 0 (game.reward, game.reward_weights), or make "
        "it fire",
    )
    gap = 1.0 / fresh if fresh > 0.0 else math.inf
    yield judged(
        "7",
        f"a reward every {gap:.3g} decisions of random play; the discount reaches {reach:.3g}",
        failure=gap > 3.0 * reach,
        warning=gap > reach,
        fix="add a term that pays on the way (game.reward = dense), or raise learner.gamma",
    )
    raw = _return_deviation(fresh_TN, game.fresh.first_TN, learner.gamma)
    effective = raw / math.sqrt(raw**2 + SCALE_FLOOR) if learner.normalize_returns else raw
    how = "divided by its deviation" if learner.normalize_returns else "as it is"
    yield judged(
        "8",
        f"the discounted return deviates by {raw:.3g}; learnt from {how}: {effective:.3g}",
        failure=not 0.01 <= effective <= 100.0,
        warning=not 0.1 <= effective <= 10.0,
        fix="multiply game.reward_weights: below 1e-4 the return is lost in the scale's own floor"
        if learner.normalize_returns
        else "set learner.normalize_returns = true",
    )
    length = float(game.fresh.first_TN.sum(0).mean())
    far, near = reach > 1000.0 and length > 500.0, reach < 10.0 and length > 30.0
    yield judged(
        "19",
        f"gamma {learner.gamma:g} reaches {reach:.3g} decisions of matches of {length:.3g}",
        failure=(reach < 3.0 and length > 2.0 * reach) or (far and reach == math.inf),
        warning=far or near,
        fix="lower learner.gamma"
        if far
        else "raise learner.gamma: 0.98 reaches 50 decisions, 0.99 100",
    )
    environment = evidence.environment
    share = environment.lost / max(environment.accounted / max(environment.ended, 1), 1e-9)
    yield judged(
        "B",
        environment.fault
        or f"{environment.ended} matches paid {environment.accounted:.4g} by their accounts, "
        f"{environment.paid:.4g} arrived",
        failure=not environment.fault and environment.lost > 1e-3 and share > 1e-3,
        warning=bool(environment.fault),
        fix="fix what stopped the matches first"
        if environment.fault
        else "clip no reward on its way: learner.normalize_returns scales wins and steps alike",
    )


def _return_deviation(rewards_TN: np.ndarray, first_TN: np.ndarray, gamma: float) -> float:
    """Standard deviation of the discounted return of first matches, in the rewards' units."""
    current_N, seen = np.zeros(first_TN.shape[1]), []
    for reward_N, first_N in zip(rewards_TN, first_TN, strict=True):
        current_N = gamma * current_N + reward_N
        seen.append(current_N[first_N])
    return float(np.concatenate(seen).std())


def _components(evidence: Evidence) -> Iterator[Finding]:
    """9 and 10: what each reward term pays, and whether winners are paid more."""
    game, weights_K = evidence.game, evidence.set_up.weights_K
    sums = (game.fresh.match_sums()[:, :1], game.bots.match_sums())
    sizes_K = np.mean([np.abs(part * weights_K).mean((0, 1)) for part in sums], axis=0)
    total = max(float(sizes_K.sum()), 1e-300)
    terms = zip(evidence.set_up.spec.reward_terms, sizes_K, weights_K, strict=True)
    shares = {name: float(size) / total for name, size, weight in terms if weight != 0.0}
    name, share = max(shares.items(), key=lambda item: item[1], default=("none", 0.0))
    silent = [term for term, part in shares.items() if part == 0.0]
    alone = len(shares) == 1
    yield judged(
        "9",
        f"{name} carries {share:.0%}"
        + (", the only term" if alone else f" of {len(shares)} terms")
        + (f"; never fires: {', '.join(silent)}" if silent else ""),
        failure=not alone and share > ALONE,
        warning=bool(silent) or (not alone and share > DOMINANT_SHARE),
        fix=f"lower the weight of {name} in game.reward_weights"
        if share > DOMINANT_SHARE
        else "make the term fire, or take its weight away",
    )
    right, decided = 0.0, 0
    for trace in (game.fresh, game.bots):
        paid_N2 = (trace.match_sums() * weights_K).sum(-1)
        score_N = trace.first_scores()
        rows = np.isfinite(score_N) & (score_N != 0.5)
        ahead = np.sign(paid_N2[rows, 0] - paid_N2[rows, 1]) * np.sign(score_N[rows] - 0.5)
        right += float((0.5 + 0.5 * ahead).sum())  # a match that paid both alike counts half
        decided += int(rows.sum())
    aligned = right / decided if decided else 1.0
    yield judged(
        "10",
        f"the winner was paid more than the loser in {aligned:.0%} of {decided} decided matches",
        failure=aligned < NOT_ALIGNED,
        warning=aligned < HARDLY_ALIGNED,
        fix="raise the weight of win, and look for a term whose sign is wrong",
    )


def _opponents(evidence: Evidence) -> Iterator[Finding]:
    """O: whether the mix's opponents leave something to learn."""
    game = evidence.game
    scores_N, met_N = game.fresh.first_scores(), np.array(game.fresh_opponents)
    by_name = {
        str(name): float(np.nanmean(scores_N[met_N == name]))
        for name in dict.fromkeys(game.fresh_opponents)
    }
    rewards_TN = game.fresh.rewards_TN2(evidence.set_up.weights_K)[..., 0]
    paid_N = (rewards_TN * game.fresh.first_TN).sum(0)
    scores = ", ".join(f"{name} {score:.0%}" for name, score in by_name.items()) or "no bot"
    easy = bool(by_name) and min(by_name.values()) >= 0.95
    yield judged(
        "O",
        f"random play scores: {scores}; its matches pay {paid_N.mean():.3g} ± {paid_N.std():.3g}",
        failure=float(paid_N.std()) < 1e-9,
        warning=easy or not evidence.set_up.opponents,
        fix="meet an opponent that random play does not beat (matchmaker.mixes)"
        if easy
        else "meet opponents against which better play is paid more: another mix, or a reward on "
        "the way",
    )


def _network(evidence: Evidence) -> Iterator[Finding]:
    """11 to 15 and 18: gradients, size and memory of the network, and its entropy."""
    network, game, learner = evidence.probe.network, evidence.game, evidence.set_up.settings.learner
    assert network is not None
    lost = [name for name, norm in network.gradients.items() if not norm > VANISHED]
    varying = {"own state": game.varying_own, "opponent": game.varying_rest}
    unseen = [
        name for name, moved in network.sensitivity.items() if moved == 0.0 and varying[name] > 0.0
    ]
    name, least = min(network.gradients.items(), key=lambda item: item[1])
    yield judged(
        "11",
        f"norm {network.norm:.3g} over {len(network.gradients)} parts, least {least:.2g} in {name}"
        + (f"; without gradient: {', '.join(lost)}" if lost else "")
        + (f"; changes no output: {', '.join(unseen)}" if unseen else ""),
        failure=bool(lost or unseen),
        fix="connect the part to the loss: no detach, no dead activation, orthogonal start",
    )
    usual = median([update.gradient_norm for update in evidence.probe.updates] or [math.inf])
    worst = max(network.gradients, key=lambda name: network.gradients[name])
    large = network.norm > EXPLODED  # a first gradient alone is held by clipping
    yield judged(
        "12",
        f"norm {network.norm:.3g} before the first update (most in {worst}), then {usual:.3g}",
        failure=not math.isfinite(network.norm) or (large and usual > EXPLODED),
        warning=large and usual > STILL_LARGE,
        fix="scale the rewards (learner.normalize_returns) and the start of the part named",
    )
    right, bars = network.fit_train, TOO_FEW_LARGE if network.parameters > LARGE else TOO_FEW
    yield judged(
        "13",
        f"{network.parameters:,} weights; after a short supervised training {right:.0%} right "
        "about simple facts of what it sees (a guess 50%)",
        failure=right < bars[0],
        warning=right < bars[1],
        fix="choose a larger agent.size (tiny, base, large)",
    )
    small, rollout = evidence.probe.learner, learner.matches * learner.n_steps
    whole = rollout <= small.matches * small.n_steps
    per_decision = network.parameters / rollout
    held_out = f"; facts learnt {right:.0%}, of matches held out {network.fit_held_out:.0%}"
    by_heart = right > 0.75 and right - network.fit_held_out > 0.2
    yield judged(
        "14",
        f"{per_decision:,.0f} weights for each of {rollout:,} decisions of a rollout"
        + (held_out if whole else ""),
        warning=whole and by_heart and per_decision > MANY_WEIGHTS,
        fix="choose a smaller agent.size, or larger rollouts (learner.matches, learner.n_steps)",
    )
    environment = evidence.environment
    missed = environment.ended - environment.reported
    yield judged(
        "15",
        f"the past moves outputs after a start by {network.leak:.1g}; {missed} of "
        f"{environment.ended} ends of matches were not reported",
        failure=network.leak > 1e-3 or missed > 0,
        fix="clear LSTM and history wherever an episode starts, and pass on every match's end",
    )
    yield judged(
        "18",
        f"{network.entropy_share:.0%} of the largest entropy; ent_coef {learner.ent_coef:g}",
        failure=network.entropy_share < ENTROPY_SHARE,
        warning=network.entropy_share < ENTROPY_LOW or learner.ent_coef == 0.0,
        fix="raise learner.ent_coef (0.003 to 0.02 learnt here); start from a policy that still "
        "explores",
    )


def _updates(evidence: Evidence) -> Iterator[Finding]:
    """16, 17, 20 and V: how far an update moves, and whether values follow."""
    probe, learner = evidence.probe, evidence.set_up.settings.learner
    cosine = _cosine(evidence)
    steps = optimizer_steps(learner)
    noisy = learner.batch_size < 32 or (cosine is not None and cosine < COARSE)
    yield judged(
        "17",
        f"{learner.batch_size} decisions, {steps} optimizer steps a rollout"
        + ("" if cosine is None else f"; cosine of its gradient with the true one {cosine:.2f}"),
        failure=learner.batch_size < 8,
        warning=noisy or steps < 4,
        fix="raise learner.batch_size"
        if noisy
        else "lower learner.batch_size, or raise learner.n_epochs",
    )
    if probe.fault:
        fix = "lower learner.learning_rate tenfold"
        yield judged("16", probe.fault, failure=True, fix=fix)
    if not probe.updates:
        yield from (_stopped(evidence, key) for key in ("16", "20", "V"))
        return
    if not probe.fault:
        yield _learning_rate(evidence)
    made = fmean(update.minibatches for update in probe.updates) / probe.planned_minibatches
    clipped = fmean(update.clip_fraction for update in probe.updates)
    moved = fmean(update.kl for update in probe.updates)
    target = "off" if learner.target_kl is None else f"{learner.target_kl:g}"
    held = evidence.held_back
    yield judged(
        "20",
        f"{clipped:.0%} of ratios clipped at {learner.clip_range:g} while KL is {moved:.1g}; "
        f"{made:.0%} of minibatches used (target_kl {target})"
        + (f"; gradients are clipped to {learner.max_grad_norm:g}" if held else ""),
        failure=held or (clipped > 0.5 and moved < 0.01) or made < 0.2,
        warning=made < 0.5,
        fix="raise learner.max_grad_norm to 0.5"
        if held
        else "raise learner.clip_range to 0.2 and learner.target_kl to 0.03, or switch target_kl "
        "off (none)",
    )
    yield _values(evidence)


def _learning_rate(evidence: Evidence) -> Finding:
    probe, rate = evidence.probe, evidence.set_up.settings.learner.learning_rate
    kls = [update.kl for update in probe.updates]
    stuck = max(*kls, probe.moved) < STUCK and not evidence.held_back
    return judged(
        "16",
        f"at {rate:g} an update moves the policy by a KL of {fmean(kls):.2g}, at most "
        f"{max(kls):.2g}; {len(kls)} of them by {probe.moved:.2g}",
        failure=max(kls) > 2.0 * KL_LARGEST or stuck,
        warning=max(kls) > KL_LARGEST,
        fix=f"{'raise' if stuck else 'lower'} learner.learning_rate tenfold",
    )


def _cosine(evidence: Evidence) -> float | None:
    """Cosine of a minibatch's gradient with the true one, from the gradient noise scale.

    A rollout can't measure noise larger than itself: the scale counts up to its decisions.
    """
    network, small = evidence.probe.network, evidence.probe.learner
    noise = network.noise_scale if network is not None else None
    if noise is None or noise <= 0.0:
        return None
    believed = min(noise, float(small.matches * small.n_steps))
    return 1.0 / math.sqrt(1.0 + believed / evidence.set_up.settings.learner.batch_size)


def _values(evidence: Evidence) -> Finding:
    probe = evidence.probe
    gap = 0.0 if probe.network is None else probe.network.value_gap
    explained = [update.explained_variance for update in probe.updates]
    last = explained[-1]
    flat = not probe.target_spread > 1e-6
    misread = not flat and gap > MISREAD * probe.target_spread
    if flat:
        fix = "fix the rewards: a critic can only learn what is paid"
    elif misread:
        fix = "let unroll compute what step did: the same weights, views and memory"
    else:
        fix = "lower learner.learning_rate, and look at the rewards (6 to 8)"
    return judged(
        "V",
        f"explained variance {explained[0]:.2f} at first, {last:.2f} after {len(explained)} "
        f"updates; targets deviate by {probe.target_spread:.2g}"
        + (f"; the learner reads values {gap:.2g} from the actor's" if misread else ""),
        failure=flat or misread or last < -1.0 or math.isnan(last),
        warning=last < -0.3,
        fix=fix,
    )
