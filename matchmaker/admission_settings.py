"""Settings of the gates that mains' snapshots must pass where `matchmaker.admit = "gate"`."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from league.settings.base import Settings


class AdmissionSettings(Settings):
    """How much stronger a main's snapshot must be than the newest member of its learner to join
    it.
    """

    elo0: float = Field(default=0.0, ge=-1000.0, le=1000.0)
    """Logistic Elo above that member of a snapshot to be rejected; a negative one lets equals
    in.
    """

    elo1: float = Field(default=35.0, ge=-1000.0, le=1000.0)
    """Logistic Elo above that member of a snapshot to be admitted; 35 are 55 % of the points.
    Half the gap takes four times the matches.
    """

    alpha: float = Field(default=0.05, gt=0.0, lt=0.5)
    """How often one as weak as elo0 may be admitted."""

    beta: float = Field(default=0.05, gt=0.0, lt=0.5)
    """How often one as strong as elo1 may be rejected."""

    limit: int = Field(default=1000, ge=5, le=50_000)
    """Pairs of matches, on one seed with the seats swapped, after which a gate that has not
    decided ends as undecided.
    """

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.elo0 >= self.elo1:
            raise ValueError(f"elo0 = {self.elo0:g} must lie below elo1 = {self.elo1:g}")
        return self
