"""Shows recorded matches: films, and charts of reward terms, the critics' values and attention.

Shape suffixes: T decisions or frames, 2 seats, K reward terms, O observation, P outputs of
the encoder that attention weighs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput, LeagueError
from league.views.dashboard.blocks import MARGINS, Block, Chart, line, lines
from league.views.dashboard.source import Source
from league.views.html import section
from league.views.style import SCREEN_PALETTE

if TYPE_CHECKING:  # torch takes two seconds to load
    from league.agent.contract import PlayingNetwork
    from league.replay import Replay

FPS = 30
WIDTH = 1280
KEPT_SECONDS = 60.0
"""Seconds for which a film stays in memory after it was shown."""
TERMS = 6
"""Number of reward terms to draw for each seat, starting with the largest."""
ATTENTION = SCREEN_PALETTE[0]


def replay_of(source: Source, match_id: str) -> Replay | None:
    """Returns the replay of a match, or None if the run hasn't kept it.

    Raises:
        DataCorrupt, VersionMismatch: the file can't be read.
        InvalidInput: the replay's game is neither the run's game nor built in.
    """
    path = source.replays().get(match_id)
    if path is None:
        return None
    from league.games.settings import GameSettings
    from league.replay import load_replay
    from league.settings.base import resolve

    def own() -> GameSettings:
        assert source.run_dir is not None
        return resolve(file=source.run_dir / "config.toml", environment={}).of(GameSettings)

    return source.kept(("replay", match_id), KEPT_SECONDS, lambda: load_replay(path, own))


def film_of(source: Source, match_id: str) -> dict[str, Any] | None:
    """Returns a match's film in the form that player.js reads, or None without a replay. Raises the
    errors of `replay_of`, and further errors if the match can't be played again.
    """
    replay = replay_of(source, match_id)
    if replay is None:
        return None
    from league.views.film.clip import Cut
    from league.views.film.files import film_json

    read = lambda: film_json(replay, Cut(), FPS, WIDTH)  # noqa: E731
    return source.kept(("film", match_id), KEPT_SECONDS, read)


def insights(source: Source, replay: Replay) -> list[Block]:
    """Returns charts over the time of a match, to show next to its replay."""
    key = ("insights", replay.match_id)
    return source.kept(key, KEPT_SECONDS, lambda: list(_read(source, replay)))


def _read(source: Source, replay: Replay) -> Iterator[Block]:
    from league.replay import Playback

    paid, seen = [], []
    try:
        with Playback(replay) as playback:
            game = playback.game
            for number in playback.moments():
                if number:
                    paid.append(game.reward_terms_N2K[0].copy())
                seen.append(game.observations_N2O[0].copy())
            paid.append(game.reward_terms_N2K[0].copy())
    except LeagueError as error:
        yield section("It can't be played again", words=str(error))
        return
    spec = game.spec
    seconds_T = np.arange(1, len(paid) + 1) / spec.frames_per_second
    sums_T2K = np.cumsum(np.array(paid, float), 0)
    for seat, name in enumerate(replay.names):
        largest = np.argsort(-np.abs(sums_T2K[-1, seat]), kind="stable")[:TERMS]
        series = [
            line(
                spec.reward_terms[term].replace("_", " "),
                seconds_T,
                sums_T2K[:, seat, term],
                colour,
            )
            for term, colour in zip(largest.tolist(), SCREEN_PALETTE, strict=False)
            if sums_T2K[:, seat, term].any()
        ]
        words = "Sums of the game's reward terms so far, in the game's units, before any weights."
        yield lines(f"Reward terms of {name}", words, series, seconds=float(seconds_T[-1]))
    yield from _minds(source, replay, np.array(seen), spec.frames_per_second, spec.max_frames)


def _minds(
    source: Source, replay: Replay, seen_T2O: NDArray[Any], per_second: int, most: int
) -> Iterator[Chart]:
    """Yields charts of attention and of the critics' values, for the seats that networks played."""
    assert source.run_dir is not None
    from league.agent.snapshot import load_snapshot
    from league.agent.strategy import encode_match
    from league.runs.blobs import BlobFolder

    folder, values = BlobFolder(source.run_dir / "blobs"), []
    for seat, contender in enumerate(replay.seats):
        if not contender.digest or not folder.has(contender.digest):
            continue
        network, card = load_snapshot(folder, contender.digest)
        frame_T = np.arange(0, len(seen_T2O), card.frame_skip)
        observations_TO = seen_T2O[frame_T, seat].astype(np.float32)
        value_T = _values(network, observations_TO, 1.0 - frame_T / most)
        values.append(line(contender.name, frame_T / per_second, value_T, SCREEN_PALETTE[1 - seat]))
        try:
            pooled = encode_match(network, observations_TO, contender.name)
        except InvalidInput:  # it has no encoder
            continue
        weights_TP = pooled.latent_weights[:, 0].mean(-1).cpu().numpy()
        step = card.frame_skip / per_second
        yield _attention(contender.name, frame_T / per_second, weights_TP, step)
    if values:
        words = "What the critic expects of the rest of the match, in units of its returns' spread."
        seconds = len(seen_T2O) / per_second
        yield lines("Value estimates", words, values, seconds=seconds)


def _values(
    network: PlayingNetwork, observations_TO: NDArray[np.float32], left_T: NDArray[Any]
) -> NDArray[Any]:
    """Returns the critic's estimate at each decision."""
    import torch

    with torch.inference_mode():
        state, values = network.eval().initial_state(1), list[float]()
        for row_O, left in zip(observations_TO, left_T, strict=True):
            out = network.step(
                torch.from_numpy(row_O).unsqueeze(0),
                torch.tensor([not values]),
                state,
                torch.tensor([left], dtype=torch.float32),
            )
            state = out.state
            values.append(float(out.value_B[0]))
    return np.array(values)


def _attention(name: str, second_T: NDArray[Any], weights_TP: NDArray[Any], step: float) -> Chart:
    """Returns a heat map of attention, by time and by the outputs' age."""
    stride = max(1, len(second_T) // 150)
    shown_TP = weights_TP[::stride]
    ages = [f"{entry * step:.2f}" for entry in range(weights_TP.shape[1])]
    data = [
        [column, row, round(float(weight), 4)]
        for column, row_P in enumerate(shown_TP)
        for row, weight in enumerate(row_P[::-1])
    ]
    options = {
        "grid": MARGINS | {"top": 10, "bottom": 28},
        "xAxis": {"type": "category", "data": [f"{second:.1f}" for second in second_T[::stride]]},
        "yAxis": {"type": "category", "data": ages, "name": "s back"},
        "visualMap": {
            "show": False,
            "min": 0,
            "max": float(np.quantile(shown_TP, 0.99)) or 1.0,
            "inRange": {"color": ["#ffffff00", ATTENTION]},
        },
        "series": [{"type": "heatmap", "data": data, "silent": True}],
    }
    words = "What the strategy latent attends to in the opponent's past: darker is more."
    title = f"Attention of {name}"
    return Chart(title=title, words=words, options=options, painted=True, timed=True)
