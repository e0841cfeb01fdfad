"""Defines the matchmaker's settings: opponent mixes, sampling, retirement and gates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from league.games.settings import GameSettings
from league.settings.base import Sections, Settings, sections_hash
from league.stats.gates.bernoulli import LEAST_GAP
from league.stats.gates.multinomial import LEAST_ELO_GAP

WithinSnapshots = Literal[
    "uniform",
    "recent",
    "latest",
    "pfsp_hard",
    "pfsp_var",
    "pfsp_linear",
    "pfsp_capped",
    "quality",
    "nash",
]
POLICY_FIELDS = (
    "mixes",
    "adaptive",
    "within_snapshots",
    "roles",
    "matches_per_draw",
)
"""Settings that a draw depends on. Logs of older versions lack some of them."""


def _seed_mixes() -> dict[str, dict[str, float]]:
    return {"league": {"snapshots": 7.0, "constant": 0.5, "based": 1.5, "random": 1.0}}


class ExploiterGateSettings(Settings):
    """Sets the two hypotheses that an exploiter's gate tests. They are about the exploiter's share
    of the points, or of the stakes in games with payoffs. Each error rate of the test is 5 %.
    """

    p0: float = Field(default=0.55, gt=0.0, lt=1.0)
    """Share of the points against its victim at which an exploiter should be rejected. A draw is
    half a point.
    """

    p1: float = Field(default=0.65, gt=0.0, lt=1.0)
    """Share of the points at which an exploiter should be accepted. An exploiter between p0 and p1
    may be accepted or rejected.
    """

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.p1 - self.p0 < LEAST_GAP:
            raise ValueError(
                f"p0 = {self.p0:.9g} must lie at least {LEAST_GAP:g} below p1 = {self.p1:.9g}"
            )
        return self


class AdmissionSettings(Settings):
    """Sets the Elo lead that a main's snapshot needs over the newest member of its learner (the
    last snapshot that was admitted).
    """

    elo0: float = Field(default=0.0, ge=-1000.0, le=1000.0)
    """Lead over the newest member, in logistic Elo, at which a snapshot should be rejected. With a
    negative value, snapshots that equal the newest member are admitted.
    """

    elo1: float = Field(default=35.0, ge=-1000.0, le=1000.0)
    """Lead over the newest member, in logistic Elo, at which a snapshot should be admitted. A lead
    of 35 means 55 % of the points. If you halve the gap between elo0 and elo1, gates take four
    times as many matches.
    """

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.elo1 - self.elo0 < LEAST_ELO_GAP:
            raise ValueError(
                f"elo0 = {self.elo0:.9g} must lie at least {LEAST_ELO_GAP:g} below elo1 = "
                f"{self.elo1:.9g}"
            )
        return self


class MatchmakerSection(Settings):
    """Defines the section [matchmaker]."""

    mixes: dict[str, dict[str, float]] = Field(default_factory=_seed_mixes)
    """Opponent mixes by name (a learner's curriculum stage names a mix): category -> relative
    weight. Categories: snapshots, self, exploiters, victims, clone, reference, rivals, or the name
    of a bot or a rival. A mix in a file replaces the preset's mix of the same name. The preset's
    other mixes stay.
    """

    adaptive: float = Field(default=0.0, ge=0.0, le=100.0)
    """How strongly a mix prefers bots that the learner does not beat. A bot's weight is in
    proportion to its written weight x (1 + adaptive x (1 - p)), where p is the score that the
    learner can expect against it now. All bots together keep their share. 0 plays the mix as
    written.
    """

    within_snapshots: WithinSnapshots = "pfsp_hard"
    """Rule that draws a player of a category. PFSP prefers players that the learner loses to, and
    "nash" follows the league's Nash mixture.
    """

    roles: Literal["mix", "alphastar-paper", "alphastar-pseudocode"] = "mix"
    """How the opponents among learners and their snapshots are chosen. "mix": by the weights of the
    mix. Otherwise: by the learner's role, with the rules of AlphaStar's paper or of its published
    pseudocode. These rules divide the total weight that the mix gives to snapshots, self and
    exploiters. The mix's other categories keep their weights.
    """

    matches_per_draw: int = Field(default=1, ge=1, le=64)
    """Number of consecutive matches against each drawn opponent. A larger number is faster, because
    fewer different snapshots play at the same time and fetching their weights takes longer than
    using them. Each player's share of the matches stays the same.
    """

    exploiters: ExploiterGateSettings = Field(default_factory=ExploiterGateSettings)
    """Gates of exploiters."""

    population_interval: int = Field(default=0, ge=0)
    """Steps between two comparisons of a main with the other mains (population based training). A
    main copies another main's weights and settings if clean matches show that the other is better.
    0: mains never copy each other.
    """

    max_saved: int = Field(default=200, ge=2, le=100_000)
    """Active snapshots that a lineage keeps. If there are more, the oldest retires, and its
    results stay. Milestones never retire, and snapshots in the support of the league's Nash mixture
    retire last.
    """

    admit: Literal["all", "gate"] = "all"
    """When a main's new snapshot becomes an opponent. "all": at once. "gate": when it has beaten
    the newest member of its learner in a gate that the evaluator plays. The learner neither waits
    for the gate nor depends on its outcome.
    """

    admission: AdmissionSettings = Field(default_factory=AdmissionSettings)
    """Gates of mains' snapshots."""

    @field_validator("mixes")
    @classmethod
    def _check_mixes(cls, mixes: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for name, mix in mixes.items():
            if not mix:
                raise ValueError(f"mix {name!r} has no category: give it one, as self = 1.0")
            for category, weight in mix.items():
                if not (math.isfinite(weight) and weight >= 0.0):
                    raise ValueError(f"mix {name!r}: {category} = {weight}: use 0 or more")
            if sum(mix.values()) <= 0.0:
                raise ValueError(f"mix {name!r} has no weight above 0")
        return mixes


class MatchmakerSettings(MatchmakerSection):
    """Combines the section with the game of the league, whose name is in section [game]."""

    game: str = "brawl"
    """Name of the game. Players of other games are refused."""
    game_version: str = ""
    """Version of the game's rules. An unknown version is "" and is not compared."""
    payoff_unit: str = ""
    """Unit of the game's payoffs, "" in games without payoffs."""
    largest_payoff: float | None = None
    """The most that a match can pay to a player, None if it is unknown."""

    @classmethod
    def of(cls, sections: Sections) -> MatchmakerSettings:
        """Combines the section [matchmaker] of a run's settings with the facts of the run's
        game.
        """
        spec = sections.of(GameSettings).spec()
        game: dict[str, Any] = {
            "game": spec.name,
            "game_version": spec.version,
            "payoff_unit": spec.payoff_unit,
            "largest_payoff": spec.largest_payoff,
        }
        return cls(**sections["matchmaker"] | game)

    def policy(self) -> dict[str, object]:
        """Returns the settings that a draw depends on."""
        return self.model_dump(mode="json", include=set(POLICY_FIELDS))

    def under(self, policy: Mapping[str, Any]) -> MatchmakerSettings:
        """Returns these settings with the values in `policy`, a result of the method `policy` that
        the log recorded. Settings that are missing there keep their values.
        """
        return self.model_copy(
            update={name: policy[name] for name in POLICY_FIELDS if name in policy}
        )

    def policy_hash(self) -> str:
        """Returns the hash of `policy`. Every draw in the log has this hash."""
        return sections_hash(self.policy())
