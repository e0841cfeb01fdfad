"""What a measurement means, in words: the bottleneck, what to change, and what was not measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from learner.profile.rows import Row

STARVED = 0.85
"""Below this many cores a process on the CPU waits for something: a core, a worker, a sleep."""
ADVICE_CPU = {
    "game": "more matches share each call's fixed cost (learner.matches); a game with workers of its own "
    "takes more of them in game.options",
    "opponents": "many different snapshots are bound by reading their weights: more matches put several "
    "seats on each (learner.matches), as do more matches of a draw (matchmaker.matches_per_draw), and fewer "
    "snapshots in the mix or in the league (matchmaker.mixes, matchmaker.max_saved) leave fewer to read",
    "inference": "more matches make larger batches (learner.matches), a smaller agent is faster (agent.size)",
    "learning": "fewer passes (learner.n_epochs), a smaller agent (agent.size) or a GPU; minibatches and "
    "threads (learner.batch_size, learner.threads) are what --sweep tries",
    "references": "fewer at once (regularisation.portfolio_size), in fewer matches (….match_share)",
    "other": "bookkeeping that no counter claims: matches that begin and end, weights that are loaded "
    "(learner.resident_mib), advantages; longer matches and larger rollouts have less of it",
}
ADVICE_GPU = {
    **ADVICE_CPU,
    "inference": "one small forward after the other leaves a GPU idle: more matches (learner.matches)",
    "learning": "larger minibatches (learner.batch_size) and lower precision fill a GPU better; fewer passes "
    "(learner.n_epochs) or a smaller agent (agent.size) leave less to do",
}


def bottleneck(row: Row, facts: Mapping[str, Any]) -> str:
    """What takes the most time and what to change, in one or two sentences."""
    kind, shares = row.slowest(), row.shares()
    advice = ADVICE_CPU if facts["device"] == "cpu" else ADVICE_GPU
    told = f"{kind} takes {shares[kind]:.0%} of the time: {advice[kind]}."
    busy = row.cpu_cores().median
    if facts["device"] == "cpu" and busy < STARVED:
        load = facts["load_average"]
        others = (
            f" (load average {load[0]:.1f} on {facts['cores']} cores at the start)" if load else ""
        )
        told += (
            f" The process kept only {busy:.2f} of a core busy: the rest of the time it waited, for a core "
            f"that other work held{others}, for processes of the game, or in sleep."
        )
    return told


def doubt(best: Row, before: Row | None) -> str:
    """Says so when the recommended row's lead is no larger than the spread; "" where there is no
    doubt.
    """
    if before is None or before is best or not before.counts:
        return ""
    ours, theirs = best.steps_per_second(), before.steps_per_second()
    if ours.lowest > theirs.highest:
        return ""
    return (
        f"the lead over the settings as they are is within the spread ({ours.lowest:,.0f} to "
        f"{ours.highest:,.0f} against {theirs.lowest:,.0f} to {theirs.highest:,.0f}): measure again on a "
        "quiet machine, or with more --seconds, before you rely on it"
    )


def not_measured(
    row: Row,
    facts: Mapping[str, Any],
    made: int,
    whole_league: int,
    round_trip: bool,
    cpu_ranks: int = 1,
) -> list[str]:
    """What a run has beside this, each in a sentence; `cpu_ranks` is the setting of that name."""
    told = [
        "waiting for the matchmaker, and its and the evaluator's share of the cores: no league runs here, "
        "matches are drawn from the mix in this process",
        "files, snapshots and checkpoints between updates",
        f"play as it becomes: fresh networks play, and matches last as long as theirs do "
        f"({row.matches_ended()} ended in the bursts)",
    ]
    if not round_trip:
        told.append("the matchmaker's answers: it could not be asked")
    if made < whole_league:
        told.append(
            f"the whole league: {made} of its {whole_league} snapshots were made, for their files' size"
        )
    if "references" in row.kinds:
        told.append(
            "the portfolio: one reference plays along here, a long run comes to hold several"
        )
    if not row.whole:
        told.append("whole updates: one takes longer than a burst, so its beginning was scaled up")
    if facts["device"] == "cpu":
        told.append("a GPU: it ran on the CPU")
        if cpu_ranks > 1:
            told.append(
                f"several ranks: one process was measured, and a run learns in {cpu_ranks} on the CPU where "
                f"there are so many cores (learner.cpu_ranks)"
            )
    else:
        if not row.gpu_busy_shares:
            told.append("how busy the GPU was: nvidia-smi did not tell")
        told.append(
            "each part's own time on the GPU: work is queued there, so a part's time is what the CPU spent "
            "in it"
        )
    return told
