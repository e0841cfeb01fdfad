"""Defines the rights of callers. Each of the three roles has the rights of the roles below it."""

from __future__ import annotations

from enum import IntEnum

from league.errors import Forbidden, InvalidInput, nearest


class AccessRole(IntEnum):
    """Lists the roles of tokens. `NONE` is for calls that need no token."""

    NONE = 0
    READ = 1
    WORKER = 2
    OPERATOR = 3

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def parse(cls, word: str) -> AccessRole:
        """Returns the role with this name, or raises `InvalidInput`."""
        if word in WORDS:
            return cls[word.upper()]
        raise InvalidInput(f"there is no role {word!r}: {nearest(word, WORDS) or ', '.join(WORDS)}")


WORDS = ("read", "worker", "operator")

_BY_SERVICE = {
    "league.v1.MatchmakerService": {
        AccessRole.READ: (
            "GetBlob GetCurricula GetMatch GetPayoff GetPopulation GetRatings GetSettings "
            "GetStatus ListMatches ListPlayers Watch"
        ),
        AccessRole.WORKER: (
            "AcquireMatches AcquirePairings CompareMember EnterStage Heartbeat KeepReferences "
            "OpenIncarnation PutBlob RegisterPlayers ReleaseMatches ReportResults"
        ),
        AccessRole.OPERATOR: (
            "AddRival AskStage PauseLearners PinRating Quarantine QuarantineWorker RemoveRival "
            "SetMix"
        ),
    },
    "league.v1.ExploiterService": {
        AccessRole.READ: "GetGates GetGeneration GetStanding",
        AccessRole.WORKER: (
            "AcquireGateMatches BeginGeneration DecideGate GiveUpGate OpenGate ReviewExploiters"
        ),
    },
    "league.v1.EvaluatorService": {
        AccessRole.READ: "GetEvaluatorStatus GetReport ListReports WatchReports",
        AccessRole.WORKER: "CancelEvaluation",  # for evaluations of players that can't play
        AccessRole.OPERATOR: "RequestEvaluation",
    },
    "league.v1.PlayerService": {AccessRole.READ: "Decide"},
    "league.v1.WorkerService": {AccessRole.WORKER: "Play"},
    # Orchestrators and load balancers ask for health, and have no token.
    "grpc.health.v1.Health": {AccessRole.NONE: "Check List Watch"},
    "grpc.reflection.v1alpha.ServerReflection": {AccessRole.READ: "ServerReflectionInfo"},
}

LEAST: dict[str, AccessRole] = {
    f"/{service}/{method}": role
    for service, by_role in _BY_SERVICE.items()
    for role, methods in by_role.items()
    for method in methods.split()
}
"""The lowest role that may make each call, by the call's full name. A test compares the names with
the services.
"""


def least_role(path: str) -> AccessRole:
    """Returns the lowest role that may make a call. A call that is not listed needs the highest
    role.
    """
    return LEAST.get(path, AccessRole.OPERATOR)


def check_role(path: str, role: AccessRole, caller: str) -> None:
    """Checks that a caller's role is high enough for a call, whose full name is `path`. If the role
    is too low, it raises `Forbidden`, which names the caller.
    """
    least = least_role(path)
    if role < least:
        raise Forbidden(
            f"{caller} has the role {role.word}, and {path.rpartition('/')[2]} needs {least.word}: "
            "ask an operator for a token of that role"
        )
