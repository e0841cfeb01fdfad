"""The audit trail: operators' calls are recorded in the league's log before they take effect."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format

from league.service.calls import Call
from matchmaker.acts import checks
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

KIND = "operator_action"
LONGEST = 200  # characters of a value that are kept


class Audit:
    """Called with every call that only operators may make; it is recorded once however often it
    is sent.
    """

    def __init__(self, league: League) -> None:
        self._league = league

    def __call__(self, call: Call) -> None:
        """Raises what keeps the call from being recorded, and with it from taking place."""
        request_id = checks.identifier(call.request.request_id, "request_id")
        fingerprint = hashlib.sha256(call.request.SerializeToString(deterministic=True)).hexdigest()
        self._league.store.once(
            f"audit {request_id}",  # with a blank, which no caller's id has
            "Audit",
            fingerprint,
            self._league.clock.now(),
            lambda tx: self._record(tx, call),
        )

    def _record(self, tx: Transaction, call: Call) -> bytes:
        assert call.caller is not None
        who, role, peer = call.caller.who, call.caller.role.word, call.peer
        asked = _shortened(
            json_format.MessageToDict(call.request, preserving_proto_field_name=True)
        )
        asked.pop("request_id", None)
        words = ", ".join(f"{key} {value!r}" for key, value in asked.items())
        text = f"{who} ({role}) calls {call.method} from {peer}: {words or 'with nothing'}"
        self._league.log(
            tx, KIND, text, who=who, role=role, peer=peer, method=call.method, request=asked
        )
        return b""


def _shortened(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value if isinstance(value, (bool, int, float)) else str(value)[:LONGEST]
        for key, value in values.items()
    }
