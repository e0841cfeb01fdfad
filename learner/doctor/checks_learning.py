"""Reasons 11 to 18, 20 and V: gradients, the network, its memory, and how far updates move."""

from __future__ import annotations

import math
from statistics import fmean, median

from league.runs.alarms import ENTROPY_LOW, ENTROPY_SHARE, KL_LARGEST
from learner.doctor.evidence import Evidence
from learner.doctor.findings import Finding, judged, unknown
from learner.doctor.network_evidence import NetworkEvidence, is_large
from learner.settings import LearnerSettings

VANISHED, EXPLODED, STILL_LARGE = 1e-6, 100.0, 30.0
STUCK = 1e-7
"""KL divergence by which a policy must have moved to have moved at all."""
TOO_FEW, TOO_FEW_LARGE = (0.78, 0.82), (0.56, 0.56)
"""Shares of right answers, failure and warning below; large networks are fitted for a shorter
time.
"""
MANY_WEIGHTS = 5000.0
"""For each decision of a rollout: below, what is learnt by heart is the fault of too little data
alone.
"""
COARSE = 0.15
"""Cosine of a minibatch's gradient with the true one, below which it points anywhere."""
MISREAD = 0.05
"""By how many deviations of the targets the learner may read other values than the actor did;
rounding to 16 bits stays below 0.01.
"""


def _network(evidence: Evidence) -> NetworkEvidence | None:
    return evidence.probe.network


def _stopped(key: str, evidence: Evidence) -> Finding:
    """What is said where training never came to the point that this reason is measured at."""
    if not evidence.probe.fault:
        return unknown(key, "no update was made")
    return judged(
        key,
        f"not measured: {evidence.probe.fault}",
        warning=True,
        fix="mend what stopped the training first",
    )


def gradients_reach(evidence: Evidence) -> Finding:
    network = _network(evidence)
    if network is None:
        return _stopped("11", evidence)
    lost = [name for name, norm in network.gradients.items() if not norm > VANISHED]
    parts = {"own state": evidence.game.varying_own, "opponent": evidence.game.varying_rest}
    unseen = [
        name for name, moved in network.sensitivity.items() if moved == 0.0 and parts[name] > 0.0
    ]
    name, least = min(network.gradients.items(), key=lambda item: item[1])
    said = f"; without gradient: {', '.join(lost)}" if lost else ""
    said += f"; changes no output: {', '.join(unseen)}" if unseen else ""
    return judged(
        "11",
        f"norm {network.norm:.3g} over {len(network.gradients)} parts, least {least:.2g} in {name}{said}",
        failure=bool(lost or unseen),
        fix="connect the part to the loss: no detach, no dead activation, orthogonal start",
    )


def gradients_bounded(evidence: Evidence) -> Finding:
    network = _network(evidence)
    if network is None:
        return _stopped("12", evidence)
    norms = [update.gradient_norm for update in evidence.probe.updates]
    usual = median(norms) if norms else math.inf
    worst = max(network.gradients, key=lambda name: network.gradients[name])
    finite = math.isfinite(network.norm)
    return judged(
        "12",
        f"norm {network.norm:.3g} before the first update (most in {worst}), then {usual:.3g}",
        failure=not finite or (network.norm > EXPLODED and usual > EXPLODED),
        warning=network.norm > EXPLODED and usual > STILL_LARGE,  # clipping holds a first one alone
        fix="scale the rewards (learner.normalize_returns) and the start of the part named",
    )


def network_large_enough(evidence: Evidence) -> Finding:
    network = _network(evidence)
    if network is None:
        return _stopped("13", evidence)
    right = network.fit_train
    bars = TOO_FEW_LARGE if is_large(network.parameters) else TOO_FEW
    return judged(
        "13",
        f"{network.parameters:,} weights; a short supervised training tells {right:.0%} of simple facts of "
        "what it sees (a guess 50%)",
        failure=right < bars[0],
        warning=right < bars[1],
        fix="choose a larger agent.size (tiny, base, large)",
    )


def network_small_enough(evidence: Evidence) -> Finding:
    network = _network(evidence)
    if network is None:
        return _stopped("14", evidence)
    learner, small = evidence.set_up.settings.learner, evidence.probe.learner
    rollout = learner.matches * learner.n_steps
    whole = rollout <= small.matches * small.n_steps
    gap = network.fit_train - network.fit_held_out
    per_decision = network.parameters / rollout
    measured = f"{per_decision:,.0f} weights for each of {rollout:,} decisions of a rollout"
    if whole:
        measured += (
            f"; facts told {network.fit_train:.0%}, of matches held out {network.fit_held_out:.0%}"
        )
    return judged(
        "14",
        measured,
        warning=whole and network.fit_train > 0.75 and gap > 0.2 and per_decision > MANY_WEIGHTS,
        fix="choose a smaller agent.size, or larger rollouts (learner.matches, learner.n_steps)",
    )


def memory_resets(evidence: Evidence) -> Finding:
    network, environment = _network(evidence), evidence.environment
    if network is None:
        return _stopped("15", evidence)
    untold = environment.ended - environment.told
    return judged(
        "15",
        f"the past moves outputs behind a start by {network.leak:.1g}; {untold} of {environment.ended} ends "
        "of matches were not told",
        failure=network.leak > 1e-3 or untold > 0,
        fix="clear LSTM and history wherever an episode starts, and hand on every match's end",
    )


def learning_rate_fits(evidence: Evidence) -> Finding:
    updates = evidence.probe.updates
    if not updates and not evidence.probe.fault:
        return unknown("16", "no update was made")
    if evidence.probe.fault:
        return judged(
            "16", evidence.probe.fault, failure=True, fix="lower learner.learning_rate tenfold"
        )
    most, rate = (
        max(update.kl for update in updates),
        evidence.set_up.settings.learner.learning_rate,
    )
    moved = evidence.probe.moved
    stuck = max(most, moved) < STUCK and not _held_back(evidence)
    return judged(
        "16",
        f"at {rate:g} an update moves the policy by a KL of {fmean(u.kl for u in updates):.2g}, "
        f"at most {most:.2g}; {len(updates)} of them by {moved:.2g}",
        failure=most > 2.0 * KL_LARGEST or stuck,
        warning=most > KL_LARGEST,
        fix="raise learner.learning_rate tenfold"
        if stuck
        else "lower learner.learning_rate tenfold",
    )


def batch_fits(evidence: Evidence) -> Finding:
    learner = evidence.set_up.settings.learner
    made = optimizer_steps(learner)
    cosine = _cosine(evidence)
    said = (
        "" if cosine is None else f"; its gradient and the true one have a cosine of {cosine:.2f}"
    )
    noisy = learner.batch_size < 32 or (cosine is not None and cosine < COARSE)
    return judged(
        "17",
        f"{learner.batch_size} decisions, {made} optimizer steps a rollout{said}",
        failure=learner.batch_size < 8,
        warning=noisy or made < 4,
        fix="raise learner.batch_size"
        if noisy
        else "lower learner.batch_size, or raise learner.n_epochs",
    )


def _cosine(evidence: Evidence) -> float | None:
    """Of a minibatch's gradient with the true one, from the gradient noise scale.

    A rollout tells no noise apart that is larger than itself: more than its decisions is not
    believed.
    """
    network, small = _network(evidence), evidence.probe.learner
    noise = network.noise_scale if network is not None else None
    if noise is None or noise <= 0.0:
        return None
    believed = min(noise, float(small.matches * small.n_steps))
    return 1.0 / math.sqrt(1.0 + believed / evidence.set_up.settings.learner.batch_size)


def optimizer_steps(learner: LearnerSettings) -> int:
    """Optimizer steps that are made on one rollout."""
    return learner.n_epochs * -(-learner.matches * learner.n_steps // learner.batch_size)


def explores(evidence: Evidence) -> Finding:
    network, learner = _network(evidence), evidence.set_up.settings.learner
    if network is None:
        return _stopped("18", evidence)
    return judged(
        "18",
        f"{network.entropy_share:.0%} of the largest entropy; ent_coef {learner.ent_coef:g}",
        failure=network.entropy_share < ENTROPY_SHARE,
        warning=network.entropy_share < ENTROPY_LOW or learner.ent_coef == 0.0,
        fix="raise learner.ent_coef (0.003 to 0.02 learnt here); start from a policy that still explores",
    )


def constraints_leave_room(evidence: Evidence) -> Finding:
    probe, learner = evidence.probe, evidence.set_up.settings.learner
    if not probe.updates:
        return _stopped("20", evidence)
    made = fmean(update.minibatches for update in probe.updates) / probe.planned_minibatches
    clipped, moved = (
        fmean(getattr(u, name) for u in probe.updates) for name in ("clip_fraction", "kl")
    )
    target = "off" if learner.target_kl is None else f"{learner.target_kl:g}"
    held = _held_back(evidence)
    said = f"; gradients are clipped to {learner.max_grad_norm:g}" if held else ""
    return judged(
        "20",
        f"{clipped:.0%} of ratios clipped at {learner.clip_range:g} while KL is {moved:.1g}; {made:.0%} of "
        f"minibatches used (target_kl {target}){said}",
        failure=held or (clipped > 0.5 and moved < 0.01) or made < 0.2,
        warning=made < 0.5,
        fix="raise learner.max_grad_norm to 0.5"
        if held
        else "raise learner.clip_range to 0.2 and learner.target_kl to 0.03, or switch target_kl off (none)",
    )


def _held_back(evidence: Evidence) -> bool:
    """Whether gradients are clipped to less than Adam's epsilon, so that its steps shrink with
    them.
    """
    network, learner = _network(evidence), evidence.set_up.settings.learner
    if network is None:
        return False
    return learner.max_grad_norm / math.sqrt(network.parameters) < 0.1 * network.adam_epsilon


def values_follow(evidence: Evidence) -> Finding:
    probe = evidence.probe
    if not probe.updates:
        return _stopped("V", evidence)
    explained = [update.explained_variance for update in probe.updates]
    last = explained[-1]
    flat = not probe.target_spread > 1e-6
    misread = not flat and _value_gap(evidence) > MISREAD * probe.target_spread
    said = (
        f"; the learner reads values {_value_gap(evidence):.2g} from the actor's" if misread else ""
    )
    return judged(
        "V",
        f"explained variance {explained[0]:.2f} at first, {last:.2f} after {len(explained)} updates; targets "
        f"deviate by {probe.target_spread:.2g}{said}",
        failure=flat or misread or last < -1.0 or math.isnan(last),
        warning=last < -0.3,
        fix=_value_fix(flat, misread),
    )


def _value_gap(evidence: Evidence) -> float:
    network = _network(evidence)
    return 0.0 if network is None else network.value_gap


def _value_fix(flat: bool, misread: bool) -> str:
    if flat:
        return "mend the rewards: a critic can only learn what is paid"
    if misread:
        return "let unroll compute what step did: the same weights, views and memory"
    return "lower learner.learning_rate, and look at the rewards (6 to 8)"


LEARNING_CHECKS = (
    gradients_reach,
    gradients_bounded,
    network_large_enough,
    network_small_enough,
    memory_resets,
    learning_rate_fits,
    batch_fits,
    explores,
    constraints_leave_room,
    values_follow,
)
