"""Writes and reads checkpoints. A checkpoint holds everything that a learner needs to continue
exactly where it was.

A checkpoint is a file of tensors and plain values. It is read without unpickling code
(`torch.load(weights_only=True)`). The file is first written under a temporary name, then synced to
the disk, and then renamed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.contract import AgentState, PlayingNetwork
from league.agent.snapshot import SnapshotCard
from league.errors import ConfigError, DataCorrupt, StorageFull, VersionMismatch, is_full
from league.games.base import BatchedGame
from league.games.workers.records import state_bytes, state_of
from league.players import Assignment
from league.runs.files import open_file
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv

FORMAT = 4
OLDER_FORMATS = (3,)
"""Formats that can still be read."""
MOST_BYTES = 16 * 2**30
KEEP = 3
"""Number of checkpoints on disk. If the newest checkpoint is damaged, two others are left."""
_FILE = re.compile(r"step_(\d{12})\.pt")
log = logging.getLogger(__name__)

Values = dict[str, Any]


class CheckpointFolder:
    """Keeps the newest `keep` checkpoints of a learner and deletes older ones."""

    def __init__(self, folder: Path, keep: int = KEEP) -> None:
        self.folder, self.keep = folder, keep
        self.unfit: list[Path] = []
        """Undamaged checkpoints that `read_newest` skipped, because `fits` returned False. The next
        write renames them.
        """

    def files(self) -> list[Path]:
        """Lists the checkpoint files, newest first."""
        if not self.folder.is_dir():
            return []
        return sorted((f for f in self.folder.iterdir() if _FILE.fullmatch(f.name)), reverse=True)

    def candidates(self) -> list[Path]:
        """Lists the checkpoints that `read` can read, newest first."""
        return self.files()

    def read(self, path: Path) -> Values:
        """Reads one of `candidates`. Raises the errors of `read_checkpoint`."""
        return read_checkpoint(path)

    def clear(self) -> None:
        """Removes all checkpoints."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Ends the work on checkpoints."""

    def write(self, step: int, values: Values) -> Path:
        """Writes a checkpoint. A crash at any moment leaves the older checkpoints intact.

        Args:
            step: step of the training.
            values: tensors and plain values.

        Raises:
            StorageFull: there is no space for the checkpoint.
        """
        path = self.folder / f"step_{step:012d}.pt"
        temporary = path.with_suffix(".tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for left in self.folder.glob("*.tmp"):  # left by a process that was killed
                left.unlink(missing_ok=True)
            with open(temporary, "wb") as file:
                torch.save({"format": FORMAT, **values}, file)
                file.flush()
                os.fsync(file.fileno())
            if path in self.unfit:
                backup = path.with_suffix(".unfit")
                backup.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # a disk without hard links
                    os.link(path, backup)
            os.replace(temporary, path)
            # Renamed only after the new file is in place, so that a crash leaves a usable file.
            for unfit in self.unfit:
                if unfit != path and unfit.exists():
                    unfit.replace(unfit.with_suffix(".unfit"))
            self.unfit = []
        except (OSError, RuntimeError) as error:  # torch reports a short write as RuntimeError
            temporary.unlink(missing_ok=True)
            if isinstance(error, RuntimeError) or is_full(error):
                raise StorageFull(
                    f"no space to write the checkpoint {path}: the older ones are whole; "
                    "free space and start again"
                ) from error
            raise
        for old in self.files()[self.keep :]:
            old.unlink(missing_ok=True)
        return path

    def read_newest(self, fits: Callable[[Values], bool] = lambda values: True) -> Values | None:
        """Reads the newest checkpoint that is undamaged and for which `fits` returns True. Logs a
        warning for each checkpoint that it skips.

        Returns:
            The checkpoint's values, or None if no checkpoint can be used.

        Raises:
            VersionMismatch: another version of this program wrote it.
        """
        for path in self.candidates():
            try:
                values = self.read(path)
            except VersionMismatch:
                raise
            except DataCorrupt as error:
                log.warning("%s: an older checkpoint is used", error)
                continue
            if fits(values):
                return values
            self.unfit.append(path)
            log.warning(
                "checkpoint %s is newer than the league's log, which was restored: it is kept as "
                "%s",
                path,
                path.with_suffix(".unfit").name,
            )
        return None


def read_checkpoint(path: Path) -> Values:
    """Reads a checkpoint.

    Raises:
        ConfigError: there is no such file.
        DataCorrupt: the file is damaged, or not a checkpoint.
        VersionMismatch: another version of this program wrote it.
    """
    try:
        with open_file(path, MOST_BYTES) as file:
            _check_archive(file)
            values = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ConfigError(f"there is no checkpoint {path}") from None
    except DataCorrupt:
        raise
    except Exception as error:  # torch raises half a dozen kinds for a damaged file
        raise DataCorrupt(f"checkpoint {path} is damaged ({type(error).__name__})") from error
    if not isinstance(values, dict) or values.get("format") not in (FORMAT, *OLDER_FORMATS):
        raise VersionMismatch(
            f"checkpoint {path} is not of format {FORMAT}: use the version that wrote it"
        )
    return values


def _check_archive(file: BinaryIO) -> None:
    """Raises `BadZipFile` unless the file is an uncompressed zip archive, as torch writes it.

    It also checks that the archive's parts are not larger than the file. Otherwise a small file
    could fill the memory.
    """
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
    size = file.seek(0, os.SEEK_END)
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in parts):
        raise zipfile.BadZipFile("it is compressed")
    if sum(entry.file_size for entry in parts) > size:
        raise zipfile.BadZipFile("its parts are larger than the file")
    file.seek(0)


# -- the learner's parts as plain values -----------------------------------------------------------


def algorithm_state(model: LeaguePPO) -> Values:
    """Returns weights, optimizer, random state, recurrent state and counters of the algorithm."""
    references = model.references
    return {
        "network": model.policy.network.state_dict(),
        "forecast": model.policy.forecast and model.policy.forecast.state_dict(),
        "optimizer": model.policy.optimizer.state_dict(),
        "num_timesteps": model.num_timesteps,
        "updates": model._n_updates,
        "scaler": model.gradient_step.scaler.state_dict(),
        "return_scale": model.return_scale.state(),
        "rate_scale": model.rate.scale,
        "shuffle_rng": model.shuffle_rng.bit_generator.state,
        "key_rng": model.key_rng.get_state(),
        "agent_state": [tensor.clone() for tensor in model.agent_state],
        "context": model.buffer.state(),
        "last_starts": torch.from_numpy(model.last_starts_N.copy()),
        "references": references and references.state(),
        "memories": references and references.memories(),
        "transform": model.transform and model.transform.state(),
    }


OWN = (
    "return_scale",
    "shuffle_rng",
    "key_rng",
    "agent_state",
    "context",
    "last_starts",
    "memories",
    "transform",
)
"""The parts of `algorithm_state` that differ from rank to rank."""


def rank_state(model: LeaguePPO, env: LeagueVecEnv, ready: list[str]) -> Values:
    """Returns the values that a rank adds to the checkpoint of the leader (rank 0): the rank's
    matches in progress, and its own random and recurrent state.

    Args:
        model: the algorithm.
        env: the rank's matches.
        ready: ids of the matches drawn and not yet begun.
    """
    state = algorithm_state(model)
    algorithm = {name: state[name] for name in OWN}
    return {"algorithm": algorithm, "environment": environment_state(env), "ready": ready}


def parts_of(saved: Values) -> list[Values]:
    """Splits a checkpoint into a complete checkpoint for each rank, with the leader's (rank 0's)
    first.
    """
    others = [
        {**saved, **rank, "algorithm": {**saved["algorithm"], **rank["algorithm"]}}
        for rank in saved.get("ranks", ())
    ]
    return [saved, *others]


def snapshot_values(network: PlayingNetwork, card: SnapshotCard) -> Values:
    """Returns the values of `algorithm_state` that a snapshot has: the weights, and the scale of
    returns, which is the unit of the critic's values.

    The scale counts as measured over all of the snapshot's steps. A scale of 1 on the card means
    that the scale was not measured, so it is left out.

    Args:
        network: the snapshot.
        card: the snapshot's card (its description).
    """
    values: Values = {"network": network.state_dict()}
    if card.reward_scale != 1.0:
        m2 = card.step * card.reward_scale**2
        values["return_scale"] = {"return_N": [], "count": card.step, "mean": 0.0, "m2": m2}
    return values


def load_weights(model: LeaguePPO, values: Values) -> None:
    """Restores weights, and also the optimizer's state and the scale of returns if `values` has
    them.

    Args:
        model: the algorithm.
        values: from `algorithm_state` or `snapshot_values`.

    Raises:
        ConfigError: the weights belong to an agent with other sizes.
    """
    try:
        model.policy.network.load_state_dict(values["network"])
    except (RuntimeError, AttributeError):  # AttributeError: a value is not a tensor
        raise ConfigError(
            "the weights to start from are of another agent size: choose the preset or the [agent] "
            "settings (size, sequence_length, span) that they were made with"
        ) from None
    if model.policy.forecast is not None and values.get("forecast"):
        model.policy.forecast.load_state_dict(values["forecast"])
    if "return_scale" in values:
        model.return_scale.load(values["return_scale"])
    if "optimizer" in values:
        _load_optimizer(model.policy.optimizer, values["optimizer"])
        if values.get("scaler"):  # empty unless the precision is float16
            model.gradient_step.scaler.load_state_dict(values["scaler"])
        if model.rate.desired_kl is not None:
            model.rate.scale = values["rate_scale"]


def _load_optimizer(optimizer: torch.optim.Optimizer, values: Values) -> None:
    """Restores the optimizer's state, but keeps the current implementation options (such as
    `fused`).

    The second parameter group belongs to the forecast head. If only the learner has a forecast
    head, the head starts without moments. If only the checkpoint has a forecast head, the head's
    moments are left out.
    """
    fresh, saved = optimizer.state_dict()["param_groups"], values["param_groups"]
    groups = [
        {**group, **{option: current[option] for option in ("fused", "foreach", "capturable")}}
        for group, current in zip(saved, fresh, strict=False)
    ] + fresh[len(saved) :]
    indices = {index for group in groups for index in group["params"]}
    state = {index: moments for index, moments in values["state"].items() if index in indices}
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def load_algorithm_state(model: LeaguePPO, values: Values) -> None:
    """Restores the result of `algorithm_state`. The number of matches must be the same."""
    load_weights(model, values)
    model.num_timesteps, model._n_updates = values["num_timesteps"], values["updates"]
    model._version_N[:] = values["updates"]  # decisions continue only without an update between
    model.shuffle_rng.bit_generator.state = values["shuffle_rng"]
    model.key_rng.set_state(values["key_rng"])
    model.agent_state = AgentState(*(tensor.to(model.device) for tensor in values["agent_state"]))
    model.buffer.load(values["context"])
    model.last_starts_N = values["last_starts"].numpy().copy()
    if model.references is not None and values.get("references"):
        model.references.load(values["references"], values["memories"])
    if model.transform is not None and values.get("transform"):
        model.transform.load(values["transform"])


def environment_state(env: LeagueVecEnv) -> Values:
    """Returns the matches in progress: game, opponents and counters."""
    return {
        # NumPy's format, because torch lacks records and some unsigned integers.
        "game": torch.frombuffer(bytearray(state_bytes(env.game.save())), dtype=torch.uint8),
        "opponent_policy": env.opponent_policy.save(),
        "matches": [match.match_id for match in env.assignments if match is not None],
        "steps": torch.from_numpy(env.steps_N.copy()),
        "step_start": torch.from_numpy(env.step_start_N.copy()),
        "terms": torch.from_numpy(env.terms_NK.copy()),
        "decisions": {
            name: torch.from_numpy(array.copy()) for name, array in env.decision_state().items()
        },
        "learner_step": env.learner_step,
        "frames_played": env.frames_played,
    }


def load_environment_state(
    env: LeagueVecEnv, values: Values, assignments: Sequence[Assignment]
) -> None:
    """Restores the matches in progress from the result of `environment_state`.

    `assignments` has the new lease of each match, in the order of the saved matches.

    Raises:
        DataCorrupt: the matches can't continue.
        VersionMismatch: the matches were played under other rules, options or another time limit.
    """
    game = values["game"]
    is_older = isinstance(game, dict)
    env.game.load(_of_format_3(game, env.game) if is_older else state_of(game.numpy().tobytes()))
    env.opponent_policy.load_state(values["opponent_policy"])
    env.assignments = list(assignments)
    env.seat_N = np.array([assignment.learner_seat for assignment in assignments], np.int64)
    env.steps_N = values["steps"].numpy().copy()
    env.step_start_N = values["step_start"].numpy().copy()
    env.terms_NK = values["terms"].numpy().copy()
    for name, array in env.decision_state().items():
        if "decisions" in values:  # older checkpoints lack them
            array[:] = values["decisions"][name].numpy()
    env.learner_step, env.frames_played = values["learner_step"], values["frames_played"]


def _of_format_3(saved: Values, game: BatchedGame) -> dict[str, NDArray[Any]]:
    """Returns a game's saved arrays. Format 3 has only their bytes, so a fresh game provides types
    and shapes. The length of an array with one dimension may differ from match to match.
    """
    try:
        return {
            name: saved[name].numpy().view(one.dtype).reshape(one.shape if one.ndim > 1 else -1)
            for name, one in game.save().items()
        }
    except (KeyError, ValueError) as error:
        raise DataCorrupt("the checkpoint is of another number of matches or is damaged") from error


def load_weights_and_counters(model: LeaguePPO, algorithm: Values, frames: int) -> None:
    """Restores weights, counters and references (frozen copies of the learner) for a learner that
    begins new matches.
    """
    load_weights(model, algorithm)
    model.num_timesteps = model.env.learner_step = algorithm["num_timesteps"]
    model._n_updates = algorithm["updates"]
    model.reseed((model.seed or 0) + model.num_timesteps)
    if model.references is not None and algorithm.get("references"):
        model.references.load(algorithm["references"])
    model.env.frames_played = frames
