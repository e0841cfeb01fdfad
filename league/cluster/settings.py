"""Defines the `[cluster]` section: what a league of several machines shares."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from league.errors import ConfigError
from league.runs.store import checked_address
from league.settings.base import Settings


class ClusterSettings(Settings):
    """What the machines of a league share. By default they share nothing but the network."""

    store: str = ""
    """Object store for weights, rivals, checkpoints and replays: s3://BUCKET/PREFIX, gs://…, az://…,
    or file:///FOLDER, which all machines see. Each run has a prefix of its own. Credentials come
    from the environment. "" keeps the files in the run's folder.
    """

    @model_validator(mode="after")
    def _check_store(self) -> Self:
        # a rule of the section, because an error of a field would show a secret in the address
        try:
            checked_address(self.store)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self
