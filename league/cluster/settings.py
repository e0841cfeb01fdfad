"""Defines the `[cluster]` section: which nodes run a league's processes, and what the machines of a
league share.
"""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, field_validator, model_validator

from league.errors import ConfigError
from league.runs.store import checked_address
from league.settings.base import Settings

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,62}=[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class ClusterSettings(Settings):
    """Which nodes of a Ray cluster run a league's learners and evaluators (`--engine ray`), and
    what the machines of a league share, which by default is nothing but the network.
    """

    store: str = ""
    """Object store for weights, rivals, checkpoints and replays: s3://BUCKET/PREFIX, gs://…, az://…,
    or file:///FOLDER, which all machines see. Each run has a separate prefix. Credentials come
    from the environment. "" keeps the files in the run's folder.
    """

    learners: str = ""
    """Label of the nodes that run learners, as "pool=gpu" of `ray start --labels pool=gpu`. ""
    means every node.
    """

    evaluators: str = ""
    """Label of the nodes that run evaluators, as `learners`. The first evaluator always runs next
    to the matchmaker.
    """

    ranks: int = Field(default=1, ge=1, le=64)
    """Processes that train each main learner together, each on a separate GPU where there are
    GPUs. They may run on different nodes.
    """

    gpus: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of a GPU that each rank of a learner takes: 0.5 lets two learners use a GPU, and 0
    trains on CPUs. Without a GPU in the cluster, learners train on CPUs.
    """

    cpus: float = Field(default=1.0, gt=0.0, le=1024.0)
    """Cores that Ray reserves for each rank of a learner. An evaluator takes one core."""

    most_evaluators: int = Field(default=1, ge=1, le=64)
    """Largest number of evaluators. Above `supervisor.evaluators`, their number follows the number
    of players that wait for clean matches.
    """

    @field_validator("learners", "evaluators")
    @classmethod
    def _check_label(cls, label: str) -> str:
        if label and not _LABEL.fullmatch(label):
            raise ValueError(f"{label!r} is no label: write NAME=VALUE, as pool=gpu")
        return label

    @model_validator(mode="after")
    def _check_store(self) -> Self:
        # a rule of the section, because an error of a field would show a secret in the address
        try:
            checked_address(self.store)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self


def labels_of(label: str) -> dict[str, str]:
    """Returns a label NAME=VALUE as a mapping, which is empty for ""."""
    name, _, value = label.partition("=")
    return {name: value} if label else {}
