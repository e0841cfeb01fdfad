"""Measures how well an agent's strategy latent recognises opponents in recorded matches.

Shape suffixes: P pooled outputs, O observation width, and all suffixes of `measures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from evaluator.analysis.measures import (
    DRIFT_BY_CHANCE,
    SHUFFLES,
    Floats,
    Labels,
    Points,
    by_opponent,
    drift,
    interval,
    moments,
    probe,
    right_of,
    silhouette,
)
from league.agent.architectures import network_of
from league.agent.contract import PlayingNetwork
from league.agent.encoder import Pooled
from league.agent.snapshot import SnapshotCard
from league.agent.strategy import encode_match, observations_of
from league.errors import InvalidInput
from league.games.base import GameSpec
from league.replay import Replay
from league.views.attention import summary_of

MOMENTS: Final = 16
"""Number of moments in each match from which the probes (classifiers of the opponent) get their
inputs.
"""
SHOWN: Final = 8
"""Number of moments of each match that the pictures and the silhouette use. The time to compute the
silhouette grows with the square of this number.
"""
AFTER: Final = (0.0, 1.0, 3.0, 10.0, 30.0, 60.0)
"""The report has the results of the probes (classifiers of the opponent) at these times, in seconds
since the start of a match.
"""
LEAST: Final = 4
"""Smallest number of matches against an opponent that count. Opponents with fewer matches are left
out.
"""
SIGNIFICANT: Final = 0.05
LEAST_SEEDS: Final = 6
"""Smallest number of seeds. With fewer seeds, two opponents can be shuffled in so few ways that no
p-value can be below `SIGNIFICANT`.
"""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """Observations of an agent in M matches.

    Attributes:
        opponents: names of the K opponents.
        labels: for each match, its seed and the index of its opponent.
        seen: for each match, the observations at the agent's decisions, `[T, O]`.
    """

    opponents: tuple[str, ...]
    labels: Labels
    seen: list[NDArray[np.float32]]


def watch(
    replays: Iterable[Replay], player: str, opponents: Sequence[str], frame_skip: int
) -> Watched:
    """Plays recorded matches again, and collects a player's observations in each match.

    Args:
        opponents: names of the opponents.
        frame_skip: number of frames between the player's decisions.

    Raises:
        InvalidInput: fewer than two opponents have at least `LEAST` matches, or all of their
            matches have the same seed.
    """
    rows = []
    for replay in replays:
        seat = 0 if replay.seats[0].name == player else 1
        opponent = replay.seats[1 - seat].name
        rows.append((opponent, replay.seed, observations_of(replay, seat, frame_skip)))
    played = Counter(name for name, *_ in rows)
    met = [name for name in opponents if played[name] >= LEAST]
    rows = [row for row in rows if row[0] in met]
    if len(met) < 2 or len({seed for _, seed, _ in rows}) < 2:
        raise InvalidInput(
            f"{player} met {len(met)} opponents in {LEAST} matches or more, and its latent can "
            "only be asked which of two: name more with --against, or more --matches"
        )
    return Watched(
        opponents=tuple(met),
        labels=Labels(
            np.array([met.index(name) for name, *_ in rows]),
            np.array([seed for _, seed, _ in rows], np.int64),
        ),
        seen=[seen_TO for *_, seen_TO in rows],
    )


def analyse(
    network: PlayingNetwork,
    card: SnapshotCard,
    spec: GameSpec,
    watched: Watched,
    *,
    player: str,
    seed: int = 0,
    shuffles: int = SHUFFLES,
    pictures: bool = False,
) -> dict[str, Any]:
    """Computes all numbers of the analysis, ready for JSON. Unknown numbers are None.

    The same probe has to name the opponent from three different inputs: from the latent, from the
    latent of an untrained encoder of the same sizes, and from the opponent's part of the current
    observation. If the probe is right more often with the latent than with each other input, the
    encoder has learnt to recognise opponents.

    Args:
        seed: seed of the shuffles and of the untrained encoder.
        shuffles: number of times that the opponents are shuffled. The shuffles show how often the
            probe is right by chance.
        pictures: whether to add the points that `league.views.strategy_figure` draws, which takes
            seconds.

    Raises:
        InvalidInput: the agent has no strategy encoder.
    """
    labels, seen = watched.labels, watched.seen
    pooled = _encode(network, seen, player)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = network_of(card.agent)
    own_size = spec.own_size
    readings: dict[str, list[NDArray[np.floating]]] = {
        "latent": [match.latent[:, 0].numpy() for match in pooled],
        "untrained": [match.latent[:, 0].numpy() for match in _encode(fresh, seen, player)],
        "seen": [seen_TO[:, own_size : card.agent.observation_size] for seen_TO in seen],
    }
    again: Any = {"seed": seed, "shuffles": shuffles}
    probes, named = dict[str, Any](), dict[str, Floats]()
    for name, parts in readings.items():
        result, named[name] = probe(moments(parts, MOMENTS), labels, **again)
        probes[name] = asdict(result)
    latents = readings["latent"]
    points = moments(latents, MOMENTS)
    of_match = Points(points.mean_of_matches(points.x_ND), np.arange(len(seen)))
    probes["match mean"] = asdict(probe(of_match, labels, **again)[0])
    gain_M = right_of(named["latent"], labels) - right_of(named["untrained"], labels)
    shown = moments(latents, SHOWN)
    if not np.ptp(shown.x_ND, axis=0).any():
        raise InvalidInput(
            f"the latent of {player} is the same at every moment of these matches, so there is "
            "nothing to analyse: take a game of more than one decision a match"
        )
    clusters, width_M = silhouette(shown, labels, **again)
    drifts = [None if estimate is None else asdict(estimate) for estimate in drift(latents, labels)]
    width_K, counts_K = by_opponent(width_M, labels), np.bincount(labels.opponent_M)
    named_KK = by_opponent(named["latent"], labels)
    mean_KD = by_opponent(of_match.x_ND, labels)
    distance_KK = np.linalg.norm(mean_KD[:, None] - mean_KD, axis=-1)
    decisions_per_second = spec.frames_per_second / card.frame_skip
    report: dict[str, Any] = {
        "player": player,
        "game": card.game,
        "step": card.step,
        "matches": len(seen),
        "seeds": len(np.unique(labels.seed_M)),
        "chance": 1 / len(watched.opponents),
        "probes": probes,
        "gain_over_untrained": [
            float(np.mean(by_opponent(gain_M, labels))),
            *interval(gain_M, np.ones(len(gain_M)), labels),
        ],
        "after": [
            row
            for seconds in AFTER
            if (row := _after(readings, labels, seconds, decisions_per_second, again))
        ],
        "silhouette": asdict(clusters),
        "drift": drifts[-1],
        "drift_by_chance": DRIFT_BY_CHANCE,
        "attention": _attention(pooled, 1 / decisions_per_second),
        "opponents": [
            {
                "name": name,
                "matches": int(counts_K[k]),
                "named": named_KK[k].tolist(),
                "silhouette": float(width_K[k]),
                "distance": distance_KK[k].tolist(),
                "drift": drifts[k],
            }
            for k, name in enumerate(watched.opponents)
        ],
    }
    if pictures:
        opponent_N = labels.opponent_M[shown.match_N]
        report["points"] = {"opponent": opponent_N.tolist(), **_projections(shown.x_ND, seed)}
    report["verdict"] = verdict_of(report)
    return report


def _encode(
    network: PlayingNetwork, seen: Sequence[NDArray[np.float32]], player: str
) -> list[Pooled]:
    """Encodes each match with `encode_match`. Equal observations give bitwise equal outputs.

    The rounding errors of an encoding depend on the length of the match, and the length reveals
    much about the opponent. So all matches are padded to the same length.
    """
    longest = max(map(len, seen))
    encoded = []
    for seen_TO in seen:
        padded_TO = np.pad(seen_TO, ((0, longest - len(seen_TO)), (0, 0)))
        pooled = encode_match(network, padded_TO, player)
        encoded.append(Pooled(*(tensor[: len(seen_TO)] for tensor in pooled)))
    return encoded


def _after(
    readings: dict[str, list[NDArray[np.floating]]],
    labels: Labels,
    seconds: float,
    per_second: float,
    again: Any,
) -> dict[str, Any] | None:
    """Applies the probes (classifiers of the opponent) to the moment `seconds` after the start of
    each match, and returns their results. Shorter matches are left out. Returns None if too few
    matches remain.
    """
    decision = int(seconds * per_second)
    lasts_M = np.array([len(latent) > decision for latent in readings["latent"]])
    counts_K = np.bincount(labels.opponent_M[lasts_M], minlength=len(labels.met))
    lasts_M &= counts_K[labels.opponent_M] >= LEAST
    here = labels.kept(lasts_M)
    if len(here.met) < 2 or len(np.unique(here.seed_M)) < 2:
        return None
    row: dict[str, Any] = {
        "seconds": seconds,
        "matches": int(lasts_M.sum()),
        "opponents": len(here.met),
        "chance": 1 / len(here.met),
    }
    for name, parts in readings.items():
        x_MD = np.stack([parts[match][decision] for match in np.flatnonzero(lasts_M)])
        points = Points(x_MD.astype(np.float64), np.arange(len(x_MD)))
        row[name] = asdict(probe(points, here, **again)[0])
    return row


def _attention(pooled: list[Pooled], step: float) -> dict[str, Any]:
    """Returns the mean attention weight for each age of an attended output. Decisions at the start
    of a match are left out, because fewer outputs exist at that time.
    """
    figures = {}
    for name in ("latent", "context"):
        weights = [getattr(match, f"{name}_weights")[:, 0].mean(-1).numpy() for match in pooled]
        slots = weights[0].shape[1]
        full_NP = np.concatenate([part_TP[slots - 1 :] for part_TP in weights])
        age_P = np.arange(slots - 1, -1, -1) * step
        # `summary_of` skips the first rows, in which some outputs do not exist yet.
        padded_NP = np.concatenate([np.zeros((slots - 1, slots)), full_NP])
        figures[name] = {
            "age_seconds": age_P[::-1].tolist(),
            "weight": full_NP.mean(0)[::-1].tolist() if len(full_NP) else None,
            "summary": summary_of(padded_NP, age_P),
        }
    return figures


def _projections(x_ND: Floats, seed: int) -> dict[str, Any]:
    """Computes the rows' first two principal components with their shares of the variance. Adds
    t-SNE if scikit-learn is installed.
    """
    centred_ND = x_ND - x_ND.mean(0)
    u, s, _ = np.linalg.svd(centred_ND, full_matrices=False)
    shares = np.square(s) / max(float(np.square(s).sum()), 1e-30)
    projections: dict[str, Any] = {
        "pca": (u * s)[:, :2].round(4).tolist(),
        "pca_shares": shares[:2].tolist(),
        "tsne": None,
    }
    try:
        from sklearn.manifold import TSNE
    except ModuleNotFoundError:
        return projections
    near = min(30.0, (len(x_ND) - 1) / 3)
    tsne = TSNE(perplexity=near, init="pca", random_state=seed, n_jobs=1)
    return projections | {"tsne": tsne.fit_transform(x_ND).round(4).tolist()}


def verdict_of(report: dict[str, Any]) -> str:
    """Says in a sentence whether the latent distinguishes opponents, and whether training has
    taught it to.
    """
    latent, untrained = (report["probes"][name] for name in ("latent", "untrained"))
    count, seeds = len(report["opponents"]), report["seeds"]
    if seeds < LEAST_SEEDS:
        return (
            f"{seeds} seeds are too few to tell whether the latent names the opponent, one of "
            f"{count}: give --matches {2 * LEAST_SEEDS} or more."
        )
    numbers = (
        f"in {latent['value']:.0%} of moments ({latent['low']:.0%} to {latent['high']:.0%}; chance "
        f"{report['chance']:.0%}, shuffled {latent['chance_low']:.0%} to "
        f"{latent['chance_high']:.0%})"
    )
    if latent["p_value"] >= SIGNIFICANT:
        shown = f"It is not shown that the latent names the opponent, one of {count}"
        return f"{shown}: it is right {numbers}."
    _, low, high = report["gain_over_untrained"]
    learnt = "as often" if low <= 0 <= high else "less often" if low > 0 else "more often"
    return (
        f"The latent names the opponent, one of {count}, {numbers}; an untrained encoder is "
        f"right {learnt}, in {untrained['value']:.0%}."
    )
