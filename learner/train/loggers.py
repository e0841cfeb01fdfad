"""Makes the learner's loggers: TensorBoard always, Weights & Biases if it is switched on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat
from torch.utils.tensorboard import SummaryWriter

from league.errors import ConfigError, Unavailable, suppress_full


def make_logger(
    wandb: Literal["off", "offline", "online"],
    folder: Path,
    settings: Mapping[str, Any],
    is_leader: bool = True,
) -> Logger:
    """Makes a logger that writes into `folder`. If there are several ranks (processes), only the
    leader (rank 0) writes.

    Args:
        wandb: off, offline or online.
        folder: folder of the learner.
        settings: all sections, stored with a Weights & Biases run.
        is_leader: whether this rank writes.

    Raises:
        ConfigError: wandb is not installed.
        Unavailable: Weights & Biases can't be used.
    """
    if not is_leader:
        return Logger(None, [])
    logger = Logger(str(folder / "tensorboard"), [TensorBoardWriter(str(folder / "tensorboard"))])
    if wandb != "off":
        logger.output_formats.append(WandbWriter(folder, wandb, settings))
    return logger


class TensorBoardWriter(TensorBoardOutputFormat):
    """Writes scalars for TensorBoard. While the disk is full, scalars are dropped."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self._folder = folder

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        with suppress_full():
            super().write(key_values, key_excluded, step)
            return
        # The disk was full, which has ended the writing thread. Later points go to a new file.
        with suppress_full():
            self.writer = SummaryWriter(log_dir=self._folder)

    def close(self) -> None:
        with suppress_full():
            super().close()


class WandbWriter(KVWriter):
    """Writes TensorBoard's scalars to Weights & Biases, online or into the run's folder.

    A run that continues keeps its name and id, so that Weights & Biases shows it as one run.
    """

    def __init__(
        self, folder: Path, mode: Literal["offline", "online"], config: Mapping[str, Any]
    ) -> None:
        # Set before the import, so that wandb sends no code and nothing about the Git repository.
        os.environ.setdefault("WANDB_DISABLE_GIT", "true")
        os.environ.setdefault("WANDB_DISABLE_CODE", "true")
        try:
            import wandb
        except ImportError:
            raise ConfigError(
                "learner.wandb needs the package wandb, which isn't installed: run `bin/bootstrap "
                "--all` or `pip install 'kumite[wandb]'`, or set learner.wandb to off"
            ) from None
        id_file = folder / "wandb" / "run_id"
        if not id_file.is_file():
            id_file.parent.mkdir(parents=True, exist_ok=True)
            id_file.write_text(wandb.util.generate_id() + "\n")
        name = "-".join((folder.resolve().parent.name, folder.name.removeprefix("learner-")))
        try:
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT", "kumite"),
                name=name,
                id=id_file.read_text().strip(),
                resume="allow",
                dir=str(folder),
                mode=mode,
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
        """Writes the same scalars as TensorBoard gets."""
        scalars = {
            name: value
            for name, value in key_values.items()
            if isinstance(value, int | float)
            and "tensorboard" not in (key_excluded.get(name) or ())
        }
        self._run.log({**scalars, "step": step})

    def close(self) -> None:
        """Writes the remaining points."""
        self._run.finish()
