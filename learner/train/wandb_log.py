"""The logger's numbers to Weights & Biases, online or into the run's folder. Nothing is imported
when off.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import KVWriter

from league.errors import ConfigError, Unavailable
from learner.settings import LearnerSettings


class WandbWriter(KVWriter):
    """Writes what the TensorBoard files get, by the learner's step.

    A run that goes on keeps its name and id, so that its parts are one run there. Values of a step
    that a resumed run does again follow the older ones.
    """

    def __init__(self, folder: Path, settings: LearnerSettings, config: Mapping[str, Any]) -> None:
        wandb = _package()
        folder.mkdir(parents=True, exist_ok=True)
        name = "-".join((folder.resolve().parent.name, folder.name.removeprefix("learner-")))
        try:
            self._run = wandb.init(
                project=settings.wandb_project,
                name=name,
                id=_run_id(folder, wandb),
                resume="allow",
                dir=str(folder),
                mode=settings.wandb,
                config=dict(config),
                settings=wandb.Settings(console="off", silent=True),
            )
        except wandb.errors.Error as error:
            raise Unavailable(
                f"Weights & Biases can't be used ({error}): log in with `wandb login`, or set "
                "learner.wandb to offline or off"
            ) from error
        self._run.define_metric("*", step_metric="step")

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Sends the scalars that are not kept from TensorBoard."""
        scalars = {
            name: value
            for name, value in key_values.items()
            if isinstance(value, int | float)
            and "tensorboard" not in (key_excluded.get(name) or ())
        }
        self._run.log({**scalars, "step": step})

    def close(self) -> None:
        """Writes out what is left."""
        self._run.finish()


def _package() -> Any:
    # Before its import: nothing of the user's terminal or machine is wanted, only the numbers.
    os.environ.setdefault("WANDB_DISABLE_GIT", "true")
    os.environ.setdefault("WANDB_DISABLE_CODE", "true")
    try:
        import wandb
    except ImportError:
        raise ConfigError(
            "learner.wandb needs the package wandb, which is not installed: install the extra wandb "
            "(pip install -e '.[wandb]'), or set learner.wandb to off"
        ) from None
    return wandb


def _run_id(folder: Path, wandb: Any) -> str:
    """The run's id there, made once and kept in the folder."""
    path = folder / "wandb" / "run_id"
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        path.write_text(wandb.util.generate_id() + "\n")
    return path.read_text().strip()
