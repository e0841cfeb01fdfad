"""The state of a run as plain lines, for logs and pipes."""

from __future__ import annotations

from league.metrics import wilson_interval
from league.players import PayoffCell, WorkerStatus
from league.runs.alarms import of_metrics as alarms_of
from league.views.terminal import marks
from league.views.terminal.facts import BotEvaluation, Screen, State


def progress_lines(screen: Screen) -> tuple[str, ...]:
    """Lines on training, on clean matches, and on troubles, as far as there are any."""
    lines = [evaluation_line(screen) if screen.phase == "evaluating" else _training_line(screen)]
    lines += [
        _learner_line(worker)
        for worker in screen.league.workers
        if worker.worker in screen.learners[1:]
    ]
    if screen.league.evaluations:
        lines.append(_bots_line(screen.league.evaluations))
    troubles = alarms_of(screen.league.metrics)
    if troubles:
        lines.append("alarms: " + ", ".join(alarm.title for alarm in troubles))
    if screen.league.trouble:
        lines.append(screen.league.trouble)
    waiting = [facts.name for facts in screen.processes if facts.state is State.WAITING]
    if waiting:
        lines.append(f"waiting to restart: {', '.join(waiting)}")
    return tuple(lines)


def _training_line(screen: Screen) -> str:
    """Steps, speed, stage, win rates, time left."""
    worker, metrics = screen.league.learner, screen.league.metrics
    if worker is None:
        return "waiting for the learner's first report"
    if not metrics:
        return f"the learner starts ({screen.steps:,} steps so far)"
    parts = [f"{screen.steps:,} steps"]
    if screen.target_steps:
        parts[0] = (
            f"{screen.steps:,} of {screen.target_steps:,} steps ({screen.done_share * 100:.1f} %)"
        )
    if "rate/steps_per_second" in metrics:
        parts.append(f"{metrics['rate/steps_per_second']:,.0f} steps/s")
    parts.append(f"stage {worker.mix or '–'}")
    rates = {name: series[-1] for name, series in screen.league.win_rates.items() if series}
    if rates:
        parts.append(
            "wins " + ", ".join(f"{name} {share * 100:.0f} %" for name, share in rates.items())
        )
    if "policy/entropy" in metrics:
        parts.append(f"entropy {metrics['policy/entropy']:.2f}")
    if screen.seconds_left is not None:
        parts.append(f"{marks.duration(screen.seconds_left)} left")
    return " · ".join(parts)


def _learner_line(worker: WorkerStatus) -> str:
    """A further learner: its activity and steps, and an exploiter's chances."""
    metrics = worker.metrics
    parts = [
        f"{worker.worker.removeprefix('learner-')}: {worker.activity}",
        f"{worker.step:,} steps",
    ]
    if "rate/steps_per_second" in metrics:
        parts.append(f"{metrics['rate/steps_per_second']:,.0f} steps/s")
    if "exploiter/generation" in metrics:
        chance = metrics["exploiter/least_chance"] * 100
        parts.append(
            f"generation {metrics['exploiter/generation']:.0f}, beats its victims {chance:.0f} %"
        )
    return " · ".join(parts)


def _bots_line(evaluations: tuple[BotEvaluation, ...]) -> str:
    """The newest evaluated snapshot against each bot, with sampled keys."""
    results = [
        f"{one.opponent} {one.sampled.wins / one.sampled.games * 100:.0f} % of {one.sampled.games}"
        for one in evaluations
        if one.sampled is not None and one.sampled.games
    ]
    return f"clean matches of {evaluations[0].player}: wins {', '.join(results)}" if results else ""


def evaluation_line(screen: Screen) -> str:
    """The evaluator's remaining work."""
    evaluator = screen.league.evaluator
    if evaluator is None:
        return "waiting for the evaluator to answer"
    if not evaluator.current:
        return f"waiting for the evaluator: {marks.counted(len(evaluator.queue), 'snapshot')} in its queue"
    of = (
        f"of {evaluator.matches_total} matches"
        if evaluator.matches_total
        else "matches of its gate"
    )
    return (
        f"waiting for the evaluator: {evaluator.current} has played {evaluator.matches_done} {of}, "
        f"{marks.counted(len(evaluator.queue), 'more snapshot')} to come"
    )


def counts(cell: PayoffCell | None) -> str:
    """«318-6-76», wins-draws-losses."""
    return f"{cell.wins}-{cell.draws}-{cell.losses}" if cell is not None and cell.games else "–"


def win_rate(cell: PayoffCell | None) -> str:
    """«79.5 % [75.3, 83.2]»: share of wins (a draw is none) with Wilson's 95 % interval."""
    if cell is None or not cell.games:
        return "–"
    interval = wilson_interval(cell.wins, cell.games)
    low, high = interval.low * 100, interval.high * 100
    return f"{cell.wins / cell.games * 100:.1f} % [{low:.1f}, {high:.1f}]"
