"""`LeagueVecEnv`: N league matches as a Stable-Baselines3 vector environment.

In every match the learner plays one of the two seats (sides), and an opponent that the league
assigns plays the other seat. Frozen agents decide in a few batched forward passes, bots decide
inside the game, and rivals are agents in separate processes.

Shape suffixes: N matches, 2 seats, A actions, O observation, K reward terms.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from league.agent.batched_policy import LIVE, BatchedPolicy
from league.errors import DataCorrupt, InvalidInput, NotFound, NothingPlayable
from league.games.base import CHOICE, EXTERNAL, BatchedGame, match_result, pressed
from league.players import Assignment, PlayerKind
from learner.rollout.buffer import OpponentActions
from learner.rollout.decisions import Decisions
from learner.rollout.matches import FinishedMatch, check_finite, end_info
from learner.rollout.source import OpponentSource

UNPLAYABLE = (DataCorrupt, NotFound, InvalidInput)
"""Errors for an opponent whose weights can't be used. The match is reported as failed."""
UNPLAYABLE_IN_A_ROW = 256
"""After this many consecutive opponents whose weights can't be used, the learner gives up. If 1 in
20 opponents could be played, the probability of such a long series would be two in a million.
"""
HANDED_BACK_IN_A_ROW = 32
"""Largest number of consecutive matches that are handed back because their rivals (other people's
agents) are slow. The next match is played even if its rival is slow.
"""
RECENT = 1000
"""The share of rivals among opponents is averaged over about this many of the newest draws. The
share of steps that wait for rivals is averaged over about this many of the newest steps against
rivals.
"""
SLOW = 0.5
"""Rivals (other people's agents) count as slow if their matches wait in more than this share of the
steps.
"""
FAILURES_IN_A_ROW = 16
"""The learner stops after this many consecutive failed matches, or after twice the number of
matches that are played at once if that is larger.
"""
FAILING_STEPS = 8
"""The learner stops only if at least this many steps had failed matches. If a process of the game
dies, all its matches fail in the same step, which alone is no reason to stop.
"""


class LeagueVecEnv(VecEnv):
    """Plays N matches whose opponents the league assigns.

    Args:
        game: the batched game, whose number of matches is the number of environments.
        source: hands out assignments and takes results.
        batched_policy: decides for the opponents, except for bots.
        frame_skip: frames that a decision lasts. Rivals and bots decide in every frame.
        reward_weights: weight of each of the game's reward terms.
        live_player: name of the player that learns here.
        ranks: number of processes that train this learner. All of them play the same number of
            matches at the same pace, and `learner_step` counts the steps of all of them.

    Attributes:
        may_wait: whether a step may end although some rivals have not yet decided about all of the
            step's frames. This may happen in up to half of all matches. `waiting_N` is true for
            these matches, and their observations stay the same. If the learner's decision has
            begun, it continues in the next step with the same actions (`or_held`).
        takes_absent: whether a step may leave out matches that can't begin yet, because the process
            that plays them is being started again. `waiting_N` is true for these matches, too.
        decisions: holds the decisions that continue in the next step.
    """

    def __init__(
        self,
        game: BatchedGame,
        source: OpponentSource,
        batched_policy: BatchedPolicy,
        *,
        frame_skip: int,
        reward_weights: NDArray[np.float32],
        live_player: str = "main",
        ranks: int = 1,
    ) -> None:
        spec = game.spec
        self.render_mode = None  # asked for by the parent's constructor
        super().__init__(
            game.num_matches,
            gymnasium.spaces.Box(-1.0, 1.0, (spec.observation_size,), np.float32),
            gymnasium.spaces.Discrete(spec.action_size)
            if spec.action_kind == CHOICE
            else gymnasium.spaces.MultiBinary(spec.action_size),
        )
        self.game, self.source, self.opponent_policy = game, source, batched_policy
        self.frame_skip, self.reward_weights_K = frame_skip, reward_weights
        self.live_player = live_player
        self.assignments: list[Assignment | None] = [None] * game.num_matches
        self.seat_N = np.zeros(game.num_matches, np.int64)
        self.steps_N = np.zeros(game.num_matches, np.int64)
        self.step_start_N = np.zeros(game.num_matches, np.int64)
        self.terms_NK = np.zeros((game.num_matches, len(spec.reward_terms)), np.float64)
        self.learner_step = 0  # steps so far, written into results
        self._steps_at_once = ranks * game.num_matches
        self.frames_played = 0
        self.finished: list[FinishedMatch] = []  # since the reader last emptied it
        self.infos: list[dict[str, Any]] = [{} for _ in range(game.num_matches)]
        self._made_at = time.monotonic()
        self.game_seconds = self.opponents_seconds = 0.0
        self._rows = np.arange(game.num_matches)
        self._failed_in_a_row = self._failing_steps = 0
        self._drawn, self._rivals_share, self._slowness = 0, 0.0, 0.0
        self.failed_N = np.zeros(game.num_matches, np.bool_)  # in the newest step
        self.may_wait, self.takes_absent = False, False
        self.waiting_N = np.zeros(game.num_matches, np.bool_)  # in the newest step
        self.decisions = Decisions(game, frame_skip)
        self._actions_N2A = np.zeros((game.num_matches, 2, spec.action_size), np.uint8)
        # The opponents' choices in the newest step, and (if kept) the actions that they played.
        self.opponent_actions_NA = self._actions_N2A[:, 0]
        self.keeps_actions = False
        self.opponent_actions: OpponentActions | None = None

    # -- VecEnv ---------------------------------------------------------------------------------

    def reset(self) -> NDArray[np.float32]:
        """Begins a match in every row (place for a match) that has no match. After a restart, some
        rows continue their matches.
        """
        self._begin([n for n, assignment in enumerate(self.assignments) if assignment is None])
        self._begin_absent()
        return self.observations()

    def step_async(self, actions: NDArray[Any]) -> None:
        if self.game.spec.action_kind == CHOICE:
            actions = np.eye(self.game.spec.action_size, dtype=np.uint8)[
                np.asarray(actions).astype(np.int64)
            ]
        else:
            actions = pressed(actions)
        wanted = (self.num_envs, self.game.spec.action_size)
        if actions.shape != wanted:
            raise ValueError(f"actions have shape {actions.shape}, not {wanted}")
        self._actions_N2A[self._rows, self.seat_N] = actions

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict]]:
        self.finished = []  # callers that read `infos` don't empty this list
        return (*self.step_arrays(self._actions_N2A[self._rows, self.seat_N]), self.infos)

    def step_arrays(
        self, actions_NA: NDArray[np.uint8]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """Steps without returning `info` dictionaries. The caller reads `finished` instead.

        Args:
            actions_NA: the learner's actions, zeros and ones in every game. Choices are one-hot.
                They are ignored in rows whose earlier decision continues.

        Returns:
            Observations `[N, O]`, rewards `[N]`, and whether a match ended in the row `[N]`.

        Raises:
            NumericalFault: a number of the game is NaN or infinite.
            NothingPlayable: too many matches failed, or no opponent can play.
        """
        self._actions_N2A[self._rows, self.seat_N] = self.or_held(actions_NA)
        rewards_N, ended_N = self._advance()
        self._replace(ended_N)
        self._begin_absent()
        if self.opponent_policy.rival_seats:
            self.opponent_policy.ask_rivals(self._seen_across())
        return self.observations(), rewards_N, ended_N

    def close(self) -> None:
        """Does nothing, because the source belongs to the caller."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        if method_name == "action_masks":  # the only method that differs from match to match
            masks_NA = self.action_masks()
            return [masks_NA[n] for n in self._get_indices(indices)]
        return [getattr(self, method_name)(*args, **kwargs) for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Returns True for `Monitor`, because this environment adds the numbers of `Monitor` to the
        `info` of a match's last step.
        """
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    # -- read by the learner --------------------------------------------------------------------

    def observations(self) -> NDArray[np.float32]:
        """Copies the learner's observation of every match, `[N, O]`. Raises `NumericalFault` for
        NaN or infinity.
        """
        check_finite(
            self.game.observations_N2O,
            self.assignments,
            lambda seat, index: f"number {index} of seat {seat}'s observation",
        )
        return self.decisions.seen_NO(self.seat_N)

    def time_left_N(self) -> NDArray[np.float32]:
        """Returns for each match the share of its time limit that was left at the learner's newest
        decision.
        """
        frames_N = self.game.frames_N - self.decisions.done_N
        return (1.0 - frames_N / self.game.spec.max_frames).astype(np.float32)

    def or_held(self, actions_NA: NDArray[Any]) -> NDArray[Any]:
        """Returns `actions_NA`, but the earlier actions in matches whose decision continues."""
        held_N = self.decisions.held_N
        if not held_N.any():
            return actions_NA
        return np.where(
            held_N[:, None], self._actions_N2A[self._rows, self.seat_N], actions_NA
        ).astype(actions_NA.dtype)

    def legal(self) -> NDArray[np.bool_] | None:
        """Copies the learner's legal choices `[N, A]`. None if the actions are keys."""
        legal_N2A = self.game.legal_N2A
        return None if legal_N2A is None else legal_N2A[self._rows, self.seat_N]

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns `legal`, or all true if the actions are keys. sb3-contrib's `MaskablePPO` calls
        this method.
        """
        legal_NA = self.legal()
        if legal_NA is not None:
            return legal_NA
        return np.ones((self.num_envs, self.game.spec.action_size), np.bool_)

    def decision_state(self) -> dict[str, NDArray[Any]]:
        """Returns the arrays (not copies) of the decisions that continue in the next step."""
        return {**self.decisions.state(), "actions": self._actions_N2A}

    # -- a step, in parts -----------------------------------------------------------------------

    def _seen_across(self) -> NDArray[np.float32]:
        return self.game.observations_N2O[self._rows, 1 - self.seat_N]

    def _advance(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        started = time.perf_counter()
        other_N = 1 - self.seat_N
        game, policy = self.game, self.opponent_policy
        before, absent_N = int(game.frames_N.sum()), game.absent_N.copy()
        legal_NA = None if game.legal_N2A is None else game.legal_N2A[self._rows, other_N]
        if policy.rival_seats:
            chosen = self._play_with_rivals(legal_NA)
        else:
            actions_NA = policy.act(self._seen_across(), legal_NA)
            self._actions_N2A[self._rows, other_N] = self.opponent_actions_NA = actions_NA
            chosen = time.perf_counter()
            self.waiting_N[:] = game.idle_N[:] = False
            game.step(self._actions_N2A, self.frame_skip)
        self.waiting_N |= absent_N
        if self.keeps_actions:
            self.opponent_actions = actions_of(game, self._actions_N2A, other_N, legal_NA)
        ended_N = game.ended_N.copy()
        self.failed_N[:] = False
        self.failed_N[list(game.failures)] = True
        self.frames_played += int(
            np.where(ended_N, game.final_frames_N, game.frames_N).sum() - before
        )
        terms_NK = game.reward_terms_N2K[self._rows, self.seat_N] * self.reward_weights_K
        names = game.spec.reward_terms
        check_finite(terms_NK, self.assignments, lambda k: f"the reward term {names[k]}")
        self.terms_NK += terms_NK
        self.steps_N += ~self.waiting_N
        waiting, rivals = int((self.waiting_N & ~absent_N).sum()), len(policy.rival_seats)
        self._slowness += (waiting - rivals * self._slowness) / max(RECENT, rivals)
        self.learner_step += self._steps_at_once
        self.opponents_seconds += chosen - started
        self.game_seconds += time.perf_counter() - chosen
        return terms_NK.sum(axis=1, dtype=np.float32), ended_N

    def _play_with_rivals(self, legal_NA: NDArray[np.bool_] | None) -> float:
        """Plays a step: frame by frame in matches against rivals, and all frames at once in the
        other matches.

        Returns a time that divides the step between the opponents and the game: the caller counts
        the time before it as the opponents' time, and the time after it as the game's time. It is
        the time at which the batched policy had decided, plus the seconds that the step then waited
        for rivals.
        """
        other_N, policy, decisions = 1 - self.seat_N, self.opponent_policy, self.decisions
        may_wait = self.num_envs // 2 if self.may_wait else 0
        rival_N = np.zeros(self.num_envs, np.bool_)
        rival_N[policy.rival_seats] = True
        decisions.begin()
        seen_NO = self._seen_across()  # updated after each frame in matches against rivals
        self._play_rivals(rival_N, seen_NO, self.num_envs)  # only rivals that have already decided
        over_N = decisions.over_N
        actions_NA = policy.act(seen_NO, legal_NA, may_wait, over_N)
        actions_NA[over_N] = self._actions_N2A[over_N, other_N[over_N]]
        self._actions_N2A[self._rows, other_N] = actions_NA
        chosen = time.perf_counter()
        self._play_decided(rival_N, seen_NO)
        # The other matches are played in two parts, so that rivals can decide twice meanwhile.
        # Slow rivals get only one part.
        parts = 1 if self._slowness > SLOW else 2
        for part in range(parts):
            others_N = ~rival_N & (self._rows % parts == part)
            decisions.play(self._actions_N2A, others_N, self.frame_skip, {})
            self._play_rivals(rival_N, seen_NO, self.num_envs)
        began = time.perf_counter()
        while (rival_N & decisions.open_N).sum() > may_wait:
            self._play_rivals(rival_N, seen_NO, may_wait)
        decisions.finish()
        self.waiting_N[:] = decisions.open_N
        self.opponent_actions_NA = self._actions_N2A[self._rows, other_N]
        return chosen + time.perf_counter() - began

    def _play_rivals(
        self, rival_N: NDArray[np.bool_], seen_NO: NDArray[np.float32], may_wait: int
    ) -> None:
        """Lets rivals decide about the next frame of open decisions, and plays this frame. The call
        waits until all but at most `may_wait` rivals have decided.
        """
        if not (rival_N & self.decisions.open_N).any():
            return
        other_N, over_N = 1 - self.seat_N, self.decisions.over_N
        actions_NA = self._actions_N2A[self._rows, other_N]
        self.opponent_policy.decide_rivals(seen_NO, actions_NA, may_wait, over_N)
        self._actions_N2A[self._rows, other_N] = actions_NA
        self._play_decided(rival_N, seen_NO)

    def _play_decided(self, rival_N: NDArray[np.bool_], seen_NO: NDArray[np.float32]) -> None:
        """Plays a frame in matches whose rivals have decided, and asks these rivals about the next
        frame.
        """
        policy, decisions = self.opponent_policy, self.decisions
        decided_N = rival_N & decisions.open_N
        decided_N[policy.waiting] = False
        decisions.play(self._actions_N2A, decided_N, 1, policy.failures)
        if len(played := np.flatnonzero(decided_N)):
            seen_NO[played] = self.game.observations_N2O[played, 1 - self.seat_N[played]]
            policy.ask_rivals(seen_NO, decisions.over_N)

    def _replace(self, ended_N: NDArray[np.bool_]) -> None:
        """Reports the matches that ended, and begins new matches in their rows."""
        rows = np.flatnonzero(ended_N).tolist()
        self.infos = [{} for _ in range(self.num_envs)]
        self._failing_steps += int(self.failed_N.any())
        for n in rows:
            assignment, seat = self.assignments[n], int(self.seat_N[n])
            assert assignment is not None
            view_O = self.game.final_observations_N2O[n, seat].copy()
            steps = int(self.step_start_N[n]), self.learner_step
            failure = self.game.failures[n] if self.failed_N[n] else ""
            late = self.opponent_policy.late_in(n)
            late_2 = (late, 0) if seat else (0, late)
            result = match_result(assignment, self.game, n, steps, failure, late_2)
            if self.failed_N[n]:
                self.infos[n] = end_info(view_O)
                self.source.report(result)
                self._count_failure(failure)
                continue
            self._failed_in_a_row = self._failing_steps = 0
            match = FinishedMatch(
                assignment=assignment,
                score=result.outcome if seat == 0 else 1.0 - result.outcome,
                steps=int(self.steps_N[n]),
                frames=result.frames,
                reward_terms=self.terms_NK[n].copy(),
                stats=dict(result.seats[seat].stats),
            )
            self.infos[n] = end_info(view_O, match, time.monotonic() - self._made_at)
            self.finished.append(match)
            self.source.report(result)
        self._begin(rows)

    def _count_failure(self, reason: str) -> None:
        """Raises `NothingPlayable` once too many consecutive matches have failed."""
        self._failed_in_a_row += 1
        are_many = self._failed_in_a_row >= max(FAILURES_IN_A_ROW, 2 * self.num_envs)
        if are_many and self._failing_steps >= FAILING_STEPS:
            raise NothingPlayable(
                f"{self._failed_in_a_row} matches of {self.game.spec.name} in a row have failed, "
                f"the last because {reason}: fix the game and start again"
            )

    def _begin(self, rows: list[int]) -> None:
        """Seats the next assigned opponents in `rows` and resets these matches to their seeds."""
        if not rows:
            return
        where_N = np.zeros(self.num_envs, np.bool_)
        seeds_N = np.zeros(self.num_envs, np.uint64)
        for n in rows:
            assignment = self._seated(n)
            where_N[n], seeds_N[n] = True, assignment.seed
            self.steps_N[n], self.step_start_N[n], self.terms_NK[n] = 0, self.learner_step, 0.0
        self.game.reset(seeds_N, where_N)
        for n in np.flatnonzero(where_N & self.game.absent_N).tolist():
            self.opponent_policy.vacate(n)  # `_begin_absent` seats the opponent

    def _begin_absent(self) -> None:
        """Begins absent matches that can begin now, and seats their opponents."""
        if not self.game.absent_N.any():
            return
        absent_N = self.game.absent_N.copy()
        self.game.begin_absent(everywhere=not self.takes_absent)
        for n in np.flatnonzero(absent_N & ~self.game.absent_N).tolist():
            assignment = self.assignments[n]
            assert assignment is not None
            self._seat_opponent(n, assignment)
            self.step_start_N[n] = self.learner_step

    def _seated(self, n: int) -> Assignment:
        """Takes assignments until an opponent can play, and seats this opponent in row `n`.

        Raises:
            NothingPlayable: `UNPLAYABLE_IN_A_ROW` consecutive opponents can't play.
        """
        for _ in range(UNPLAYABLE_IN_A_ROW):
            assignment = self._take()
            try:
                self._seat_opponent(n, assignment)
            except UNPLAYABLE as error:
                reason, now = str(error), self.learner_step
                self.source.report(match_result(assignment, self.game, n, (now, now), reason))
                continue
            self.assignments[n], self.seat_N[n] = assignment, assignment.learner_seat
            return assignment
        raise NothingPlayable(
            f"{UNPLAYABLE_IN_A_ROW} assigned opponents in a row can't play, the last "
            f"({assignment.opponent.name}) because {reason}: put the weights back into the run's "
            "blobs, or take their category out of the mix, and start again"
        )

    def _take(self) -> Assignment:
        """Takes the next assignment. An assignment against a rival is handed back if rivals are
        slow and too many matches already wait for rivals: a larger share of the matches than the
        share of rivals among recent assignments.
        """
        for _ in range(HANDED_BACK_IN_A_ROW):
            assignment = self.source.take()
            is_rival = assignment.opponent.kind is PlayerKind.RIVAL
            self._drawn = min(self._drawn + 1, RECENT)
            self._rivals_share += (is_rival - self._rivals_share) / self._drawn
            are_slow = self._slowness > SLOW and self.waiting_N.mean() > self._rivals_share
            if not (is_rival and are_slow):
                return assignment
            self.source.hand_back(assignment)
        return self.source.take()

    def _seat_opponent(self, n: int, assignment: Assignment) -> None:
        opponent = assignment.opponent
        self.game.bots_N2[n] = EXTERNAL
        if opponent.kind is PlayerKind.BOT:
            self.opponent_policy.vacate(n)
            bot = self.game.spec.bot_index(opponent.name)
            self.game.bots_N2[n, 1 - assignment.learner_seat] = bot
        elif opponent.kind is PlayerKind.LIVE:
            if opponent.name != self.live_player:
                raise InvalidInput(
                    f"{opponent.name} trains elsewhere: only its snapshots can be played here"
                )
            self.opponent_policy.seat(n, LIVE)
        else:
            self.opponent_policy.seat(n, opponent.digest)


def actions_of(
    game: BatchedGame,
    sent_N2A: NDArray[np.uint8],
    seat_N: NDArray[np.int64],
    legal_NA: NDArray[np.bool_] | None,
) -> OpponentActions:
    """Returns the actions that the players in the seats `seat_N` took in the last step, also in
    matches that ended in this step.

    Args:
        game: the game after the step.
        sent_N2A: the actions that were passed to the game. Bots decide inside the game, so their
            actions are missing.
        seat_N: the seat of each match whose action is returned.
        legal_NA: the legal choices of these seats before the step.
    """
    rows, played_N2A = np.arange(game.num_matches), game.played_N2A()
    known_N = game.bots_N2[rows, seat_N] == EXTERNAL
    if played_N2A is not None:
        known_N = np.ones_like(known_N)
    actions_NA = (sent_N2A if played_N2A is None else played_N2A)[rows, seat_N]
    if legal_NA is not None:  # forced choices say nothing, illegal choices have probability 0
        known_N = known_N & (legal_NA.sum(-1) > 1) & (actions_NA * legal_NA).any(-1)
    return OpponentActions(
        actions_NA=actions_NA * known_N[:, None], legal_NA=legal_NA, known_N=known_N
    )
