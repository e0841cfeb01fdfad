"""One call as observers see it: metrics, logs, the audit trail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import grpc

from league.errors import LeagueError
from league.rpc.status import code_of
from league.security.roles import AccessRole


class Caller(NamedTuple):
    """The token's name ("" without tokens), its role, and the peer ("ipv4:127.0.0.1:40312")."""

    name: str
    role: AccessRole
    peer: str

    @property
    def who(self) -> str:
        return self.name or "somebody"


@dataclass(slots=True)
class Call:
    """`caller` is None for a call that was refused before its caller was known; `seconds` last
    until the reply is made.
    """

    method: str
    peer: str
    caller: Caller | None = None
    request: Any = None
    reply: Any = None
    error: LeagueError | None = None
    seconds: float = 0.0

    @property
    def code(self) -> str:
        """Name of the gRPC code that the caller gets."""
        return grpc.StatusCode.OK.name if self.error is None else code_of(self.error).name


Observer = Callable[[Call], None]
