"""The calls of people who run a league: a part of `league.rpc.client.MatchmakerClient`."""

from __future__ import annotations

from league.ids import new_id
from league.players import PlayerState
from league.rpc import convert as wire
from league.rpc import convert_stages as wire_stages
from league.rpc.channel import Connection
from league.stages import StageRequest
from league.v1 import matchmaker_pb2 as m


class OperatorCalls(Connection):
    """Stages, anchors and quarantine. `by` names who asks, for the log."""

    def ask_stage(self, stage: str, by: str, player: str = "") -> StageRequest:
        """Asks a learner to enter a stage, by name or "next", between two of its rollouts.

        Raises:
            NotFound: there is no such stage, or no learner with stages.
            InvalidInput: it is in that stage already, or in the last one.
            Refused: its steps are done, or the league is served for reading only.
        """
        request = m.AskStageRequest(request_id=new_id(), player=player, stage=stage, by=by)
        return wire_stages.from_request(self._call("AskStage", request).asked)

    def pin_rating(self, player: str, mu: float, by: str) -> int:
        """Makes a player an anchor at `mu` points, in every book, for the results to come.

        Returns:
            The log position behind which it holds.

        Raises:
            NotFound: there is no such player.
            InvalidInput: it learns, or `mu` is no rating.
        """
        request = m.PinRatingRequest(request_id=new_id(), player=player, mu=mu, by=by)
        return self._call("PinRating", request).log_position

    def unpin_rating(self, player: str, by: str) -> int:
        """Lets an anchor go: it goes on from what was believed of it before.

        Returns:
            The log position behind which it holds.

        Raises:
            NotFound: there is no such player.
            InvalidInput: it is not pinned.
        """
        request = m.PinRatingRequest(request_id=new_id(), player=player, unpin=True, by=by)
        return self._call("PinRating", request).log_position

    def quarantine(self, player: str, reason: str, by: str) -> PlayerState:
        """Keeps a bot, snapshot or reference from being met by anybody; its results stay.

        Raises:
            NotFound: there is no such player.
            InvalidInput: it learns, is in quarantine already, or no reason is given.
            Refused: its gate is open.
        """
        request = m.QuarantineRequest(request_id=new_id(), player=player, reason=reason, by=by)
        return wire.from_state(self._call("Quarantine", request).state)

    def release_player(self, player: str, by: str) -> PlayerState:
        """Ends a quarantine; returns the state in which the player is without it.

        Raises:
            NotFound: there is no such player.
            InvalidInput: it is in no quarantine.
        """
        request = m.QuarantineRequest(request_id=new_id(), player=player, release=True, by=by)
        return wire.from_state(self._call("Quarantine", request).state)
