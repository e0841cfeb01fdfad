"""Saves agents in safetensors files, each with a card (a description of the agent) in its metadata.
No file is ever unpickled.

The card's fingerprint summarises the network's outputs on a fixed probe (a made-up series of
observations), including the recurrent state. Every load computes the fingerprint again on the CPU,
so weights with another snapshot's card are refused.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import safetensors
import safetensors.torch
import torch
from pydantic import AfterValidator, ConfigDict, Field, SkipValidation, TypeAdapter, ValidationError
from torch import Tensor

from league.agent.architectures import config_of, network_of
from league.agent.config import NetworkConfig
from league.agent.contract import PlayingNetwork
from league.errors import DataCorrupt, InvalidInput, NumericalFault, VersionMismatch
from league.games.base import GameSpec
from league.games.registry import family, takes_agents_of
from league.players import Role
from league.runs.blobs import METADATA_KEY, BlobFolder, read_header
from league.runs.files import first_fault, parse_json

FORMAT = "kumite-agent-1"
TOLERANCE = 2e-4
_PROBE_STEPS, _PROBE_ROWS = 12, 3
_Word = Annotated[str, Field(max_length=1000)]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SnapshotCard:
    """Describes a snapshot and its origin.

    Attributes:
        agent: architecture and sizes of the network.
        game: the game that the snapshot plays.
        game_version: version of the game's rules.
        frame_skip: number of frames that a decision lasts.
        step: number of steps that the learner had made.
        parent: the learner's previous snapshot, or "" for the first.
        role: role of the learner.
        seed: seed of the learner.
        reward_preset: reward preset of the training.
        reward_scale: divisor of the rewards.
        config_hash: hash of all settings of the run.
        cloned_from: the player whose recorded matches the learner imitated at first, or "".
        metrics: measurements at the time of the snapshot.
        created_at: Unix time in seconds.
        fingerprint: summary of the network's outputs on a fixed series of observations, which
            `save_snapshot` computes.
    """

    __pydantic_config__ = ConfigDict(
        strict=True, allow_inf_nan=False, revalidate_instances="always"
    )

    agent: SkipValidation[NetworkConfig]
    game: _Word
    game_version: _Word
    frame_skip: Annotated[int, Field(ge=1, le=30)] = 1
    step: Annotated[int, Field(ge=0, le=10**15)] = 0
    parent: _Word = ""
    role: Annotated[str, AfterValidator(lambda role: Role(role).value)] = "main"
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] = 0
    reward_preset: _Word = ""
    reward_scale: Annotated[float, Field(gt=0)] = 1.0
    config_hash: _Word = ""
    cloned_from: _Word = ""
    metrics: Mapping[_Word, Annotated[float, Field(allow_inf_nan=True)]] = field(
        default_factory=dict
    )
    created_at: Annotated[float, Field(ge=0)] = 0.0
    fingerprint: tuple[float, ...] = ()

    def to_json(self) -> str:
        """Returns the card as a JSON object with sorted keys."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values |= {"agent": self.agent.to_dict(), "metrics": dict(self.metrics)}
        return json.dumps(values, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> SnapshotCard:
        """Reads a card from the result of `to_json`. Raises `DataCorrupt` for any other text."""
        try:
            values: dict[str, Any] = dict(parse_json(text))
            values["agent"] = config_of(values["agent"])
            values["fingerprint"] = tuple(values["fingerprint"])
            return _CARD.validate_python(cls(**values))
        except ValidationError as error:
            fault = first_fault(error)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            fault = str(error)
        raise DataCorrupt(f"a snapshot's card can't be read ({fault}): take the snapshot again")


_CARD = TypeAdapter(SnapshotCard)


def check_rules(name: str, card: SnapshotCard, spec: GameSpec) -> None:
    """Checks whether an agent can play a game, and warns if it was trained under older rules.

    Args:
        name: the agent's name, for messages.
        card: the agent's card.
        spec: the game.

    Raises:
        InvalidInput: the agent plays another game.
        VersionMismatch: the meaning of the agent's observations has changed.
    """
    if card.game == spec.name and card.game_version in spec.older_versions:
        _log.warning(
            "%s learned version %s of %s, whose rules have changed (now %s): it may play worse",
            *(name, card.game_version, card.game, spec.version),
        )
    elif not takes_agents_of(spec, card.game, card.game_version):
        plays = f"{name} plays {card.game} version {card.game_version}, this is {spec.name}"
        if family(card.game) != family(spec.name):
            raise InvalidInput(f"{plays}: name its game or its run, or another member")
        raise VersionMismatch(
            f"{plays} version {spec.version}: use it with the version that trained it"
        )


def fingerprint(network: PlayingNetwork) -> tuple[float, ...]:
    """Summarises logits, values, latent and LSTM states on the probe (a fixed series of
    observations), in 6 numbers per step.

    A new episode starts in the middle of the probe, so the fingerprint also depends on how the
    network clears its state.
    """
    config = network.config
    obs_TBO = _waves(_PROBE_STEPS, _PROBE_ROWS, config.observation_size)
    left_TB = _waves(_PROBE_STEPS, _PROBE_ROWS, 1).squeeze(-1)
    starts_TB = torch.zeros(_PROBE_STEPS, _PROBE_ROWS, dtype=torch.bool)
    starts_TB[_PROBE_STEPS // 2, 0] = True
    device = network.device
    numbers: list[float] = []
    with torch.inference_mode():
        state = network.initial_state(_PROBE_ROWS)
        for obs_BO, starts_B, left_B in zip(obs_TBO, starts_TB, left_TB, strict=True):
            output = network.step(obs_BO.to(device), starts_B.to(device), state, left_B.to(device))
            state = output.state
            parts = (output.logits_BA, output.value_B, output.latent_BD, state.h_BH, state.c_BH)
            numbers += [_summary(tensor.cpu()) for tensor in parts]
            numbers.append(float(output.logits_BA[0, 0]))
    return tuple(round(number, 6) for number in numbers)


def _waves(*shape: int) -> Tensor:
    """Returns fixed numbers in [-1, 1], which don't depend on a random number generator."""
    places = torch.arange(math.prod(shape), dtype=torch.float64)
    return torch.sin(places * 0.7310585).float().view(shape)


def _summary(values: Tensor) -> float:
    """Returns a number that depends on every value and its position."""
    flat = values.double().flatten()
    weights = torch.cos(torch.arange(flat.numel(), dtype=torch.float64) * 1.6180339)
    return float((flat * weights).sum() / max(flat.numel(), 1) ** 0.5)


def save_snapshot(blobs: BlobFolder, network: PlayingNetwork, card: SnapshotCard) -> str:
    """Saves `network` with `card`, whose `agent` and `fingerprint` are set from the network.

    Args:
        blobs: folder for the file.
        network: the network.
        card: the card.

    Returns:
        The digest of the file.

    Raises:
        NumericalFault: a weight is NaN or infinite.
        StorageFull: the disk is full. Nothing was written.
    """
    weights = {
        name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()
    }
    for name, tensor in weights.items():
        if not torch.isfinite(tensor).all():
            raise NumericalFault(
                f"{name} has NaN or infinity: the snapshot at step {card.step} was not saved"
            )
    answers = fingerprint(_network_of(network.config, weights))
    card = dataclasses.replace(card, agent=network.config, fingerprint=answers)
    # The metadata has a single key, because safetensors writes several keys in an order that
    # differs between processes. But a learner that was killed and restarted must publish exactly
    # the same file again.
    about = json.dumps({"format": FORMAT, "card": card.to_json()}, sort_keys=True)
    return blobs.put(safetensors.torch.save(weights, {METADATA_KEY: about}))


def read_card(blobs: BlobFolder, digest: str) -> SnapshotCard:
    """Reads only the card of a snapshot, after checking the whole file against its digest.

    Raises:
        NotFound: there is no such blob.
        DataCorrupt: the file is damaged.
        VersionMismatch: the card has another format.
    """
    return _card(read_header(blobs.get(digest), digest)[0], digest)


def load_snapshot(
    blobs: BlobFolder, digest: str, device: torch.device | str = "cpu"
) -> tuple[PlayingNetwork, SnapshotCard]:
    """Loads a frozen network (without gradients) and the snapshot's card.

    Args:
        blobs: folder of the file.
        digest: the blob's digest.
        device: device for the weights.

    Raises:
        NotFound: there is no such blob.
        InvalidName: `digest` is not a sha256.
        DataCorrupt: the file does not match its digest, or the weights or outputs don't match the
            card.
    """
    content = blobs.get(digest)
    about, tensors = read_header(content, digest)
    card = _card(about, digest)
    unfit = DataCorrupt(f"the weights in {digest} don't fit its card: take the snapshot again")
    with torch.device("meta"):  # takes no memory
        parts = network_of(card.agent).state_dict()
    if tensors != {name: ("F32", list(tensor.shape)) for name, tensor in parts.items()}:
        raise unfit
    try:
        network = _network_of(card.agent, safetensors.torch.load(content))
    except (RuntimeError, safetensors.SafetensorError):
        raise unfit from None
    computed, wanted = fingerprint(network), card.fingerprint
    if len(computed) != len(wanted) or not all(
        abs(a - b) <= TOLERANCE * (1.0 + abs(b)) for a, b in zip(computed, wanted, strict=True)
    ):
        raise DataCorrupt(
            f"the network in {digest} does not match its card's fingerprint: it is not the player "
            "that was frozen, take the snapshot again"
        )
    return network.to(device), card


def _network_of(config: NetworkConfig, weights: Mapping[str, Tensor]) -> PlayingNetwork:
    """Makes a frozen network with `weights`, without drawing random numbers. Raises `RuntimeError`
    if the weights don't fit.
    """
    with torch.device("meta"):
        network = network_of(config)
    network.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, assign=True)
    return network.requires_grad_(False).eval()


def _card(about: Any, digest: str) -> SnapshotCard:
    try:
        kind, text = about["format"], about["card"]
    except (KeyError, TypeError) as error:
        raise DataCorrupt(f"{digest} holds no snapshot ({error}): take it again") from None
    if kind != FORMAT:
        raise VersionMismatch(f"{digest} is of format {kind!r}, this version reads {FORMAT!r}")
    return SnapshotCard.from_json(text)
