"""Shows an agent's attention in a recorded match, as a picture and in numbers.

The match is played again, and the encoder reads the agent's observations. The attention weights
depend only on observations. So they are the same as in the recorded match, although the agent's
keys were sampled there.

Shape suffixes: T decisions, O observation, D width, P outputs of the encoder (for the P latest
decisions) that attention weighs, C components.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from league.agent.contract import PlayingNetwork
from league.agent.snapshot import SnapshotCard
from league.agent.strategy import encode_match
from league.errors import InvalidInput
from league.games.drawing.painter import Painter
from league.replay import Playback, Replay
from league.views.style import FAINT, GRID, INK, STYLE, png_of

SEATS = ("#C0364A", "#1373B5")
"""The fighters' colours in the scenes, dark enough for lines and text."""
COMPONENTS = ("#1F2933", "#009E73", "#B0749A")
LESS_MORE: Final = LinearSegmentedColormap.from_list(
    "less and more", ["#7A4A12", "#D9B57E", "#FFFFFF", "#7FC3B8", "#0B5F58"]
)
SIDE = 1.012
"""Left edge of the notes next to a panel, as a share of the panel's width."""
SCENES = 5
WARM_UP = 45
"""Number of frames before a scene that the painter sees without showing them, so that its camera
and effects are in motion when the scene begins.
"""


class Event(NamedTuple):
    """Holds the damage that seat `victim` took in a frame, in points. A lost stock counts as
    infinite damage.
    """

    frame: int
    victim: int
    damage: float


def events_of(
    frames: Sequence[Mapping[str, Any]], winner: int | None, most_frames: int
) -> list[Event]:
    """Returns hits and knock-outs in order. Games without fighters in their frames have no events.

    Args:
        frames: the frames of the match.
        winner: the seat that won, or None after a draw.
        most_frames: the time limit in frames. A match that was won earlier ended with a knock-out.
            The last frame doesn't show this knock-out yet, so it is added.
    """
    events = []
    for number, (before, now) in enumerate(pairwise(frames), start=1):
        players = zip(before.get("players", ()), now.get("players", ()), strict=True)
        for seat, (old, new) in enumerate(players):
            if new["damage"] > old["damage"]:
                events.append(Event(number, seat, new["damage"] - old["damage"]))
            if new["stocks"] < old["stocks"]:
                events.append(Event(number, seat, math.inf))
    if frames[0].get("players") and winner is not None and len(frames) < most_frames:
        events.append(Event(len(frames) - 1, 1 - winner, math.inf))
    return events


def key_frames(events: Sequence[Event], first: int, last: int, count: int) -> list[int]:
    """Chooses frames that are worth a picture.

    It prefers knock-outs, then the hits with the most damage, and then the frames farthest from
    the frames chosen so far.

    Args:
        events: hits and knock-outs.
        first, last: the range of frames.
        count: the largest number of frames.

    Returns:
        Frames in order, with some distance between them.
    """
    apart = max(1, (last - first) // (count + 1))
    chosen: list[int] = []
    for event in sorted(events, key=lambda event: -event.damage):
        is_apart = all(abs(event.frame - other) >= apart for other in chosen)
        if first <= event.frame <= last and is_apart and len(chosen) < count:
            chosen.append(event.frame)
    while len(chosen) < count:
        gaps = sorted({first, last, *chosen})
        widest, middle = max(((b - a, (a + b) // 2) for a, b in pairwise(gaps)), default=(0, first))
        if widest < 2:
            break
        chosen.append(middle)
    return sorted(chosen) or [first]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Holds a match as an agent read it. The last of the encoder's P outputs is the newest, with
    age 0.

    Attributes:
        seat: the agent's seat.
        names: names of both players, by seat.
        step: seconds between decisions.
        frames_per_second: frames per second of the game.
        frame_T: frame of each decision.
        latent_TD: strategy latents.
        latent_TP, context_TP: attention over outputs, averaged over heads. The query of `latent_TP`
            is learned, and the query of `context_TP` comes from the agent's own observation.
            Outputs from before the match have weight 0.
        events: hits and knock-outs.
        frames: the match's frames (`BatchedGame.frame`).
    """

    seat: int
    names: tuple[str, str]
    step: float
    frames_per_second: int
    frame_T: NDArray[np.int64]
    latent_TD: NDArray[np.float32]
    latent_TP: NDArray[np.float32]
    context_TP: NDArray[np.float32]
    events: list[Event]
    frames: list[dict[str, Any]] = field(repr=False)

    @property
    def second_T(self) -> NDArray[np.float64]:
        """Time of each decision since the start of the match, in seconds."""
        return self.frame_T / self.frames_per_second

    @property
    def age_P(self) -> NDArray[np.float64]:
        """Age of each output in seconds."""
        return np.arange(self.latent_TP.shape[1] - 1, -1, -1) * self.step


def agent_seat(replay: Replay, wanted: int | None) -> int:
    """Returns the seat of the agent whose attention is to be read.

    Args:
        replay: the match.
        wanted: a seat, or None for the first seat that a network played.

    Raises:
        InvalidInput: no network played in this seat.
    """
    played = [seat for seat, contender in enumerate(replay.seats) if contender.digest]
    names = replay.names
    if wanted is None and played:
        return played[0]
    if wanted in played:
        return wanted
    if not played:
        raise InvalidInput(f"{names[0]} and {names[1]} have no weights: name a match of a snapshot")
    raise InvalidInput(
        f"{names[wanted or 0]} in seat {wanted} has no weights: read --seat {played[0]}"
    )


def read_match(replay: Replay, seat: int, network: PlayingNetwork, card: SnapshotCard) -> Reading:
    """Plays the match again and reads it with the agent of `seat`.

    Raises:
        InvalidInput: the agent has no attention or plays another game.
        DataCorrupt, VersionMismatch: the replay can't be played again.
    """
    name = replay.seats[seat].name
    if card.game != replay.recipe.name:
        raise InvalidInput(f"{name} plays {card.game}, the match is one of {replay.recipe.name}")
    frames, seen = [], []
    with Playback(replay) as playback:
        for number, frame in enumerate(playback.frames()):
            frames.append(frame)
            if number % card.frame_skip == 0:
                seen.append(playback.game.observations_N2O[0, seat].astype(np.float32))
    spec, pooled = playback.game.spec, encode_match(network, np.stack(seen), name)
    return Reading(
        seat=seat,
        names=replay.names,
        step=card.frame_skip / spec.frames_per_second,
        frames_per_second=spec.frames_per_second,
        frame_T=np.arange(len(seen)) * card.frame_skip,
        latent_TD=pooled.latent[:, 0].numpy(),
        latent_TP=pooled.latent_weights[:, 0].mean(-1).numpy(),
        context_TP=pooled.context_weights[:, 0].mean(-1).numpy(),
        events=events_of(frames, replay.winner, spec.max_frames),
        frames=frames,
    )


def summary_of(weights_TP: NDArray[np.floating], age_P: NDArray[np.floating]) -> list[float] | None:
    """Summarises attention over the decisions at which all P outputs of the encoder existed.

    Args:
        weights_TP: attention over outputs.
        age_P: age of each output in seconds.

    Returns:
        None if there are no such decisions. Otherwise a list of five numbers. The first three are
        the mean age of attention in seconds, and the 5th and 95th percentiles of this age over the
        decisions. The fourth is the entropy of attention, divided by its value for equal attention
        to all outputs. The fifth is the share of the weights' variance that age alone explains,
        which is 1 if the weights are the same at every decision.
    """
    slots = weights_TP.shape[1]
    full_TP = np.asarray(weights_TP[slots - 1 :], np.float64)
    if not len(full_TP) or slots < 2:
        return None
    age_T = full_TP @ age_P
    entropy_T = -(full_TP * np.log(np.clip(full_TP, 1e-12, 1.0))).sum(1)
    total = np.square(full_TP - full_TP.mean()).sum()
    left = np.square(full_TP - full_TP.mean(0)).sum()
    return [
        float(age_T.mean()),
        *np.quantile(age_T, (0.05, 0.95)).tolist(),
        float(entropy_T.mean() / np.log(slots)),
        float(1.0 - left / total) if total > 0 else 1.0,
    ]


def draw(reading: Reading, start: float = 0.0, stop: float | None = None) -> bytes:
    """Draws a part of a match.

    Args:
        reading: the match as an agent read it.
        start: the first second.
        stop: the last second, or None for the end.

    Returns:
        A PNG of 1600 x 1160 pixels.

    Raises:
        InvalidInput: the match has no frames between `start` and `stop`.
    """
    last = len(reading.frames) / reading.frames_per_second
    end = last if stop is None else min(stop, last)
    if not 0 <= start < end:
        raise InvalidInput(
            f"the match lasts {last:.1f} s: it can't be shown from {start:g} s to {end:g} s"
        )
    with rc_context(STYLE):
        figure = Figure(figsize=(16, 11.6), dpi=100, facecolor="white")
        figure.subplots_adjust(left=0.052, right=0.855, top=0.715, bottom=0.045, hspace=0.42)
        player, other = reading.names[reading.seat], reading.names[1 - reading.seat]
        figure.text(0.052, 0.968, f"What {player} looks at", fontsize=17, fontweight="bold",
                    color=SEATS[reading.seat])  # fmt: skip
        figure.text(0.052, 0.946, f"in a match against {other}", color=SEATS[1 - reading.seat])
        words = f"{len(reading.age_P)} outputs of the encoder, one every {reading.step:.2f} s"
        figure.text(0.985, 0.972, words, color=FAINT, ha="right")
        panels = figure.subplots(4, height_ratios=(0.8, 1.2, 1.2, 0.95))
        course, latent, context, components = panels
        _course(course, reading, start, end)
        _attention(latent, reading, reading.latent_TP,
                   "Strategy latent: what the learned query looks at")  # fmt: skip
        _attention(context, reading, reading.context_TP,
                   "Context: what its own observation looks for")  # fmt: skip
        _components(components, reading, start, end)
        shown = _scenes(figure, reading, start, end)
        for axes in panels:
            axes.set_xlim(start, end)
            axes.tick_params(length=0)
            axes.xaxis.set_major_locator(MaxNLocator(14, integer=end - start > 8, prune="upper"))
            for second in shown:
                axes.axvline(second, color=INK, linewidth=0.8, linestyle=(0, (2, 3)), alpha=0.5)
        components.set_xlabel("seconds of the match", loc="right")
        return png_of(figure)


def _scenes(figure: Figure, reading: Reading, start: float, end: float) -> list[float]:
    """Draws the key frames side by side, with camera and sparks. Returns their times in seconds."""
    per_second = reading.frames_per_second
    first, last = int(start * per_second), min(int(end * per_second), len(reading.frames)) - 1
    chosen = key_frames(reading.events, first, last, SCENES)
    for column, number in enumerate(chosen):
        axes = figure.add_axes((0.052 + column * 0.1882, 0.765, 0.1802, 0.1398))
        painter = Painter(640, 360, reading.names)
        for frame in reading.frames[max(0, number - WARM_UP) : number + 1]:
            painter.see(frame)
        axes.imshow(painter.paint(), aspect="auto", interpolation="antialiased")
        axes.set_xticks([])
        axes.set_yticks([])
        now = [event for event in reading.events if event.frame == number]
        words = f"{number / per_second:.1f} s"
        if worst := max(now, key=lambda event: event.damage, default=None):
            is_out = math.isinf(worst.damage)
            verb = "is knocked out" if is_out else f"is hit for {worst.damage:.0f}"
            words += f"  {reading.names[worst.victim]} {verb}"
        axes.set_title(words, fontsize=10, fontweight="normal", pad=5)
    return [number / per_second for number in chosen]


def _note(axes: Axes, line: int, words: str, color: str) -> None:
    """Writes a line of text to the right of a panel. Line 0 is the highest."""
    axes.text(SIDE, 0.8 - 0.22 * line, words, color=color, transform=axes.transAxes)


def _course(axes: Axes, reading: Reading, start: float, end: float) -> None:
    """Draws the damage of both fighters, a dot for each hit, and a cross for each knock-out."""
    axes.set_title("The match: damage taken, with hits (dots) and knock-outs (crosses)")
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    if not reading.frames[0].get("players"):
        _note(axes, 0, "a game without fighters", FAINT)
        axes.set_yticks([])
        return
    seconds = np.arange(len(reading.frames)) / reading.frames_per_second
    for seat, color in enumerate(SEATS):
        damage = np.array([frame["players"][seat]["damage"] for frame in reading.frames])
        axes.plot(seconds, damage, color=color, linewidth=1.5)
        suffered = [event for event in reading.events if event.victim == seat]
        hits = [event.frame for event in suffered if math.isfinite(event.damage)]
        axes.plot(seconds[hits], damage[hits], ".", color=color, markersize=5)
        lost = [event.frame for event in suffered if math.isinf(event.damage)]
        lost = [number for number in lost if start <= seconds[number] <= end]
        before = [damage[max(0, number - 1)] for number in lost]
        axes.plot(seconds[lost], before, "X", color=color, markersize=10, markeredgecolor="white",
                  clip_on=False, zorder=4)  # fmt: skip
        _note(axes, seat, reading.names[seat], color)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.set_ylabel("damage")


def _attention(axes: Axes, reading: Reading, weights_TP: NDArray[np.float32], title: str) -> None:
    """Draws how attention deviates from its mean, by time and age, and the mean on the right.

    The colours show log2 of the attention divided by the match's mean attention to outputs of the
    same age. Early moments, for which not all outputs existed, stay empty.
    """
    step, age_P, slots = reading.step, reading.age_P, weights_TP.shape[1]
    full_TP = np.asarray(weights_TP, np.float64)[slots - 1 :]
    mean_P = (full_TP if len(full_TP) else np.asarray(weights_TP, np.float64)).mean(0)
    times_TP = np.full(weights_TP.shape, np.nan)
    times_TP[slots - 1 :] = np.log2(np.maximum(full_TP, 1e-12) / mean_P)
    most = 1.0
    if len(full_TP):
        most = max(float(np.quantile(np.abs(times_TP[slots - 1 :]), 0.995)), 0.05)
    axes.set_facecolor("#EEF1F4")
    axes.imshow(
        times_TP[:, ::-1].T, cmap=LESS_MORE, vmin=-most, vmax=most, aspect="auto", origin="lower",
        extent=(reading.second_T[0], reading.second_T[-1] + step, -step / 2, age_P[0] + step / 2),
        interpolation="nearest",
    )  # fmt: skip
    axes.set_title(title)
    axes.set_ylabel("looks back, seconds")
    axes.yaxis.set_major_locator(MaxNLocator(4))
    words = f"brown 1/{2**most:.2g} of its mean, green {2**most:.2g} times"
    axes.text(1.0, 1.03, words, color=FAINT, fontsize=9, ha="right", transform=axes.transAxes)
    side = axes.inset_axes((SIDE, 0.0, 0.148, 1.0))
    side.barh(age_P, mean_P, height=0.82 * step, color="#B9C4CE")
    side.set_ylim(axes.get_ylim())
    side.xaxis.set_major_locator(MaxNLocator(2, prune="lower"))
    side.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    side.set_yticks([])
    side.tick_params(length=0)
    side.text(0.0, -0.09, "mean", color=FAINT, transform=side.transAxes, va="center")


def _components(axes: Axes, reading: Reading, start: float, end: float) -> None:
    """Draws the latent's first principal components over the match, in units of the first
    component's standard deviation.
    """
    axes.set_title("Strategy latent: its three largest principal components")
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    centred_TD = np.asarray(reading.latent_TD, np.float64) - reading.latent_TD.mean(0)
    u, s, _ = np.linalg.svd(centred_TD, full_matrices=False)
    parts_TC, share_C = u * s, np.square(s) / max(float(np.square(s).sum()), 1e-12)
    parts_TC /= max(float(parts_TC[:, 0].std()), 1e-12)
    inside_T = (reading.second_T >= start) & (reading.second_T <= end)
    for component, color in enumerate(COMPONENTS[: parts_TC.shape[1]]):
        axes.plot(
            reading.second_T[inside_T], parts_TC[inside_T, component], color=color, linewidth=1.2
        )
        _note(axes, component, f"{share_C[component]:.0%} of its variance", color)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.set_ylabel("deviations")
