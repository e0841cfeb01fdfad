"""Runs the trials of a sweep by Ray Tune. This is the only file of the sweep that imports Ray.

Ray starts on this machine for the time of the sweep, or the sweep joins a cluster. Each trial is a
process that Ray starts, with a league of its own (`league.sweep.trial`). Ray's ASHA scheduler ends
trials that score worse than others had at the same rung (Li et al., "A system for massively
parallel hyperparameter tuning", 2020). Nothing is read back from Ray's own files: the records of
the trials say how far a sweep is.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from league.errors import InvalidInput, LeagueError, Unavailable
from league.runs.files import write_whole
from league.settings.device_flags import cores
from league.sweep.trial import Order, Rung, Trial, play

EXTRA = "the sweep needs Ray: pip install 'kumite[cluster]'"
REDUCTION = 3
"""ASHA lets a third of the trials pass each rung."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Says what each trial takes of the machines, and whether a running cluster is joined."""

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
        Unavailable: Ray could not start, or there is no cluster.
    """
    with _ray(order.folder, resources):
        from ray import tune
        from ray.tune.schedulers import ASHAScheduler

        class Notes(tune.Callback):
            def on_trial_result(self, *_: Any, result: dict[str, Any], **__: Any) -> None:
                on_rung(result["number"], result["rung"])

            def on_trial_complete(self, *_: Any, trial: Any, **__: Any) -> None:
                on_end(trial.config["number"])

        with tempfile.TemporaryDirectory(prefix="kumite-sweep-") as storage:
            trainable = tune.with_resources(
                partial(_trial, order=order, trials=tuple(trials)),
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


def _trial(config: dict[str, Any], order: Order, trials: Sequence[Trial]) -> None:
    """Plays a trial in a process of Ray. Its faults stand in its record, so the sweep goes on."""
    from ray import tune

    def report(rung: Rung) -> None:
        tune.report(
            {"steps": rung.steps, "score": rung.score.value, "number": number, "rung": rung}
        )

    number = config["number"]
    trial = next(trial for trial in trials if trial.number == number)
    try:
        play(order, trial, report)
    except LeagueError as error:
        raise RuntimeError(str(error)) from None  # Ray can't copy every error between processes


def cluster() -> str:
    """Returns the address of the running cluster that the variable RAY_ADDRESS names.

    Raises:
        InvalidInput: the variable is missing, or is no address.
        Unavailable: nothing answers there. Ray itself would wait for minutes.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput(
            f"RAY_ADDRESS = {address!r} names no cluster: set it to HOST:PORT of the cluster's head"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise Unavailable(
            f"no Ray cluster answers at {address} ({error}): start it, or unset RAY_ADDRESS to use "
            "this machine"
        ) from None
    return address


@contextmanager
def _ray(folder: Path, resources: Resources) -> Iterator[None]:
    """Connects to a cluster, or runs Ray on this machine, during the block."""
    for name, value in {
        "RAY_AUTH_MODE": "token",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_BACKEND_LOG_LEVEL": "error",
        "RAY_worker_niceness": "0",  # Ray's 15 would slow leagues down beside any other process
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "RAY_AIR_NEW_OUTPUT": "0",  # prints nothing at verbosity 0, unlike the new output
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C ends the trials at once
    }.items():
        os.environ.setdefault(name, value)
    if not resources.join and not os.environ.keys() & {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}:
        token = folder / "ray.token"  # otherwise Ray would keep a token in the user's home folder
        write_whole(token, secrets.token_hex(32), private=True)
        os.environ["RAY_AUTH_TOKEN_PATH"] = str(token)
    address = cluster() if resources.join else "local"
    import ray

    started: dict[str, Any] = {"num_cpus": cores(), "include_dashboard": False}
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.CRITICAL,  # the records of the trials have their faults
            **({} if resources.join else started),
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = "join the cluster" if resources.join else "start on this machine"
        raise Unavailable(f"Ray can't {where} ({error}): see docs/sweep.md") from None
    try:
        yield
    finally:
        ray.shutdown()
