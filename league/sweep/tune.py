"""Runs the trials of a sweep by Ray Tune. No other file of the sweep imports Ray.

Ray starts on this machine for the time of the sweep, or the sweep joins a cluster. Each trial is a
process that Ray starts, with a separate league (`league.sweep.trial`). Ray's ASHA scheduler ends
trials that score worse than others had at the same rung (Li et al., "A system for massively
parallel hyperparameter tuning", 2020). Nothing is read back from Ray's own files: the records of
the trials say how far a sweep is.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from league.cluster.engine import Place
from league.cluster.ray import Cluster
from league.errors import ConfigError, InvalidInput, LeagueError
from league.games.registry import PATH
from league.sweep.trial import Order, Rung, Trial, play

EXTRA = "the sweep needs Ray: bin/bootstrap --all, or pip install 'kumite[cluster]'"
REDUCTION = 3
"""ASHA lets a third of the trials pass each rung."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Says what each trial takes of the machines, and whether a running cluster is joined. Trials
    that take no GPU train on CPUs.
    """

    cpus: float = 1.0
    gpus: float = 0.0
    join: bool = False


def check_installed() -> None:
    """Raises `InvalidInput` if a package of Ray Tune is not installed. Ray itself is imported
    later, because it reads the environment at its import.
    """
    for name in ("ray", "pandas", "pyarrow", "tensorboardX"):
        if find_spec(name) is None:
            raise InvalidInput(f"{EXTRA} ({name} is missing)")


def run(
    order: Order,
    trials: Sequence[Trial],
    resources: Resources,
    on_rung: Callable[[int, Rung], None],
    on_end: Callable[[int], None],
) -> None:
    """Plays the trials until each of them is done, has failed, or was ended by ASHA.

    Args:
        order: how trials are played.
        trials: the trials' records.
        resources: what each trial takes.
        on_rung: is called with a trial's number and its score at a rung.
        on_end: is called with the number of a trial that is done, or that ASHA has ended.

    Raises:
        ConfigError: the cluster has no token, this machine does not have it, or no node is large
            enough for a trial.
        InvalidInput: a node of a joined cluster does not see the sweep's folder.
        KeyboardInterrupt: Ctrl-C was pressed.
        Unavailable: there is no cluster.
    """
    with interrupts() as is_interrupted, _cluster(resources) as cluster:
        _check_nodes(cluster, resources, order)
        from ray import tune
        from ray.tune.schedulers import ASHAScheduler

        class Notes(tune.Callback):
            def on_step_begin(self, *_: Any, **__: Any) -> None:
                if is_interrupted():
                    raise KeyboardInterrupt

            def on_trial_result(self, *_: Any, result: dict[str, Any], **__: Any) -> None:
                on_rung(result["number"], result["rung"])

            def on_trial_complete(self, *_: Any, trial: Any, **__: Any) -> None:
                on_end(trial.config["number"])

        with tempfile.TemporaryDirectory(prefix="kumite-sweep-") as storage:
            trainable = tune.with_resources(
                partial(
                    _trial,
                    order=order,
                    trials=tuple(trials),
                    is_on_cpu=not resources.gpus,
                    path=os.environ.get(PATH, ""),
                ),
                {"cpu": resources.cpus, "gpu": resources.gpus},
            )
            tuner = tune.Tuner(
                trainable,
                param_space={"number": tune.grid_search([trial.number for trial in trials])},
                tune_config=tune.TuneConfig(
                    metric="score",
                    mode="max",
                    scheduler=ASHAScheduler(
                        time_attr="steps",
                        grace_period=order.rungs[0],
                        max_t=order.rungs[-1],
                        reduction_factor=REDUCTION,
                    ),
                    reuse_actors=False,
                ),
                run_config=tune.RunConfig(
                    name="sweep", storage_path=storage, verbose=0, callbacks=[Notes()]
                ),
            )
            tuner.fit()
            if is_interrupted():
                raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether Ctrl-C was pressed during the block.

    Python ignores an exception that is raised while an object is deleted, and Ray deletes many. So
    a `KeyboardInterrupt` can be lost.
    """
    pressed = False

    def on_signal(number: int, frame: Any) -> None:
        nonlocal pressed
        pressed = True
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _check_nodes(cluster: Cluster, resources: Resources, order: Order) -> None:
    """Raises an error if the trials would wait for ever, or if a node can't see their folder."""
    wanted, nodes = Place(command=(), cpus=resources.cpus, gpus=resources.gpus), cluster.nodes()
    if not any(node.suits(wanted) for node in nodes):
        largest = max(nodes, key=lambda node: (min(node.gpus, wanted.gpus), node.cpus))
        raise ConfigError(
            f"a trial takes {wanted.cpus:g} CPUs and {wanted.gpus:g} GPUs, but the largest node, "
            f"{largest.name}, has {largest.cpus:g} CPUs and {largest.gpus:g} GPUs: lower --cpus or "
            "--gpus"
        )
    if resources.join:
        cluster.check_shared(order.folder)


def _trial(
    config: dict[str, Any], order: Order, trials: Sequence[Trial], is_on_cpu: bool, path: str
) -> None:
    """Plays a trial in a process of Ray. Its record keeps its faults, so the sweep continues."""
    from ray import tune

    if path:  # the folders of the caller's games
        os.environ[PATH] = path

    def report(rung: Rung) -> None:
        tune.report(
            {"steps": rung.steps, "score": rung.score.value, "number": number, "rung": rung}
        )

    number = config["number"]
    trial = next(trial for trial in trials if trial.number == number)
    try:
        play(order, trial, report, is_on_cpu=is_on_cpu)
    except LeagueError as error:
        raise RuntimeError(str(error)) from None  # Ray can't copy every error between processes


def _cluster(resources: Resources) -> Cluster:
    """Connects to a cluster, or starts Ray on this machine. Raises the errors of `Cluster`."""
    for name, value in {
        "RAY_BACKEND_LOG_LEVEL": "error",
        "RAY_worker_niceness": "0",  # with Ray's 15, any other process would slow leagues down
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "RAY_AIR_NEW_OUTPUT": "0",  # prints nothing at verbosity 0, unlike the new output
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C ends the trials at once
    }.items():
        os.environ.setdefault(name, value)
    return Cluster(is_alone=not resources.join)
