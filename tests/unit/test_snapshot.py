"""Frozen agents: what was saved is what plays, and nothing else is ever served."""

import contextlib
import dataclasses
import json
import math
import random

import pytest
import safetensors.torch
import torch
from agents import DEEP, MEMBERS, PERCEPTRON, RECURRENT, network, play, sequence

from league.agent.config import NetworkConfig
from league.agent.snapshot import SnapshotCard, fingerprint, load_snapshot, read_card, save_snapshot
from league.errors import DataCorrupt, InvalidName, NotFound, NumericalFault, VersionMismatch
from league.runs.blobs import BlobFolder


@pytest.fixture
def blobs(tmp_path) -> BlobFolder:
    return BlobFolder(tmp_path)


CARD = SnapshotCard(
    agent=DEEP,
    game="brawl",
    game_version="1",
    frame_skip=4,
    step=50_000,
    parent="main@45000",
    seed=7,
    reward_preset="laptop",
    reward_scale=2.5,
    config_hash="abc",
    metrics={"loss/value": 0.25},
    created_at=12.5,
)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_snapshot_plays_as_the_network_it_froze(blobs: BlobFolder, name: str) -> None:
    net = network(MEMBERS[name])
    digest = save_snapshot(blobs, net, dataclasses.replace(CARD, agent=MEMBERS[name]))
    loaded, card = load_snapshot(blobs, digest)
    assert card == dataclasses.replace(CARD, agent=MEMBERS[name], fingerprint=fingerprint(net))
    assert read_card(blobs, digest) == card
    data = sequence(MEMBERS[name], 20, 3)
    for mine, theirs in zip(play(net, data)[0], play(loaded, data)[0], strict=True):
        assert torch.equal(mine.logits_BA, theirs.logits_BA)
    assert not any(parameter.requires_grad for parameter in loaded.parameters())


def test_later_training_does_not_change_a_snapshot_and_saving_draws_nothing(
    blobs: BlobFolder,
) -> None:
    net = network(DEEP)
    before, state = fingerprint(net), torch.get_rng_state()
    digest = save_snapshot(blobs, net, CARD)
    assert torch.equal(torch.get_rng_state(), state)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.1)
    assert fingerprint(load_snapshot(blobs, digest)[0]) == before
    assert fingerprint(net) != before


def rewritten(
    blobs: BlobFolder, digest: str, change_weights=None, change_card=None, kind=None
) -> str:
    """A blob whose digest is right, but whose weights or card were changed."""
    content = blobs.get(digest)
    weights = safetensors.torch.load(content)
    metadata = json.loads(metadata_of(content)["kumite"])
    if change_weights:
        change_weights(weights)
    if change_card:
        metadata["card"] = change_card(metadata["card"])
    metadata["format"] = kind or metadata["format"]
    return blobs.put(safetensors.torch.save(weights, {"kumite": json.dumps(metadata)}))


def metadata_of(content: bytes) -> dict[str, str]:
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]


def test_every_process_writes_the_same_bytes(blobs: BlobFolder) -> None:
    """The order of several metadata keys would change from process to process."""
    digest = save_snapshot(blobs, network(DEEP), CARD)
    assert list(metadata_of(blobs.get(digest))) == ["kumite"]


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (DEEP, ["actor.last.bias", "memory.recurrent", "encoder.layers.1.bias"]),
        (PERCEPTRON, list(network(PERCEPTRON).state_dict())),
        (RECURRENT, list(network(RECURRENT).state_dict())),
    ],
)
def test_other_weights_under_the_same_card_are_refused(
    blobs: BlobFolder, config: NetworkConfig, names: list[str]
) -> None:
    digest = save_snapshot(blobs, network(config), CARD)
    for name in names:

        def change(weights, name=name) -> None:
            weights[name] = weights[name] * 1.5  # a constant more is nothing to a softmax

        with pytest.raises(DataCorrupt, match="fingerprint"):
            load_snapshot(blobs, rewritten(blobs, digest, change))


def test_weights_that_do_not_fit_the_card_are_refused(blobs: BlobFolder) -> None:
    digest = save_snapshot(blobs, network(DEEP), CARD)
    with pytest.raises(DataCorrupt, match="fit"):
        load_snapshot(
            blobs, rewritten(blobs, digest, lambda weights: weights.pop("actor.last.bias"))
        )

    def wider(text: str) -> str:
        values = json.loads(text)
        values["agent"]["memory"] *= 2
        return json.dumps(values)

    with pytest.raises(DataCorrupt, match="fit"):
        load_snapshot(blobs, rewritten(blobs, digest, change_card=wider))


def test_the_card_of_an_agent_whose_setting_is_gone_loads_if_nothing_changed(
    blobs: BlobFolder,
) -> None:
    net = network(DEEP)
    digest = save_snapshot(blobs, net, CARD)

    def older(has_history: bool) -> str:
        def change(card: str) -> str:
            values = json.loads(card)
            values["agent"]["history"] = has_history
            return json.dumps(values)

        return rewritten(blobs, digest, change_card=change)

    loaded, _ = load_snapshot(blobs, older(has_history=True))
    assert loaded.config == DEEP
    with pytest.raises(DataCorrupt, match="history"):
        load_snapshot(blobs, older(has_history=False))


UNKNOWN = '{"agent": {"architecture": "oracle"}}'
UNFIT = '{"agent": {"architecture": "perceptron", "observation_size": 64}}'


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"agent": 3}', "not json", UNKNOWN, UNFIT])
def test_an_unreadable_card_is_refused(blobs: BlobFolder, text: str) -> None:
    digest = save_snapshot(blobs, network(DEEP), CARD)
    with pytest.raises(DataCorrupt, match="card"):
        read_card(blobs, rewritten(blobs, digest, change_card=lambda _: text))


def test_another_format_and_files_that_are_no_snapshot_are_refused(blobs: BlobFolder) -> None:
    digest = save_snapshot(blobs, network(DEEP), CARD)
    with pytest.raises(VersionMismatch, match="kumite-agent-9"):
        load_snapshot(blobs, rewritten(blobs, digest, kind="kumite-agent-9"))
    for content in (b"", b"\xff" * 64):
        with pytest.raises(DataCorrupt):
            load_snapshot(blobs, blobs.put(content))


def test_crafted_and_missing_digests(blobs: BlobFolder) -> None:
    for digest in ("../../etc/passwd", "live", ""):
        with pytest.raises(InvalidName):
            load_snapshot(blobs, digest)
    with pytest.raises(NotFound):
        load_snapshot(blobs, "0" * 64)


def test_a_network_with_nan_is_not_saved_and_named(blobs: BlobFolder) -> None:
    net = network(DEEP)
    with torch.no_grad():
        net.actor.last.weight[0, 0] = float("nan")
    with pytest.raises(NumericalFault, match=r"actor\.last\.weight"):
        save_snapshot(blobs, net, CARD)
    assert list(blobs.root.iterdir()) == []


def raw(blobs: BlobFolder, header: bytes, data: bytes) -> str:
    return blobs.put(len(header).to_bytes(8, "little") + header + data)


def malformed(content: bytes, kind: str) -> bytes:
    """A file that is damaged in one way, under a digest that will be right."""
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    name = "actor.last.bias"
    match kind:
        case "cut":
            data = data[: len(data) // 2]
        case "longer":
            data += b"\0" * 64
        case "offset":
            header[name]["data_offsets"] = [10**9, 10**9 + 40]
        case "offsets":
            header[name]["data_offsets"] = "x"
        case "overlap":
            other = next(key for key, one in header.items() if key not in ("__metadata__", name))
            header[name]["data_offsets"] = header[other]["data_offsets"]
        case "type":
            header[name]["dtype"] = "I32"
        case "no type":
            header[name]["dtype"] = ["F32"]
        case "shape":
            header[name]["shape"] = [*header[name]["shape"], 1]
        case "huge shape":
            header[name]["shape"] = [2**62, 2**62]
        case "no tensor":
            header[name] = 3
        case "more":
            header["more"] = {"dtype": "F32", "shape": [0], "data_offsets": [len(data), len(data)]}
    packed = json.dumps(header).encode()
    return len(packed).to_bytes(8, "little") + packed + data


@pytest.mark.parametrize(
    "kind",
    [
        *("cut", "longer", "offset", "offsets", "overlap", "type", "no type", "shape"),
        *("huge shape", "no tensor", "more"),
    ],
)
def test_malformed_weights_under_their_digest_are_refused(blobs: BlobFolder, kind: str) -> None:
    content = blobs.get(save_snapshot(blobs, network(DEEP), CARD))
    digest = blobs.put(malformed(content, kind))
    with pytest.raises(DataCorrupt, match=digest):
        load_snapshot(blobs, digest)


def test_json_that_is_nested_deeply_is_refused(blobs: BlobFolder) -> None:
    deep = "[" * 100_000
    for header in (deep, json.dumps({"__metadata__": {"kumite": deep}})):
        digest = raw(blobs, header.encode(), b"")
        for read in (read_card, load_snapshot):
            with pytest.raises(DataCorrupt, match="deeply"):
                read(blobs, digest)
    with pytest.raises(DataCorrupt, match="deeply"):
        SnapshotCard.from_json(deep)


@pytest.mark.parametrize("seed", range(4))
def test_no_changed_byte_of_a_header_does_more_than_be_refused(
    blobs: BlobFolder, seed: int
) -> None:
    content = blobs.get(save_snapshot(blobs, network(PERCEPTRON), CARD))
    length = int.from_bytes(content[:8], "little")
    rng = random.Random(seed)
    for _ in range(60):
        changed = bytearray(content)
        changed[rng.randrange(8 + length)] = rng.randrange(256)
        digest = blobs.put(bytes(changed))
        with contextlib.suppress(DataCorrupt):
            load_snapshot(blobs, digest)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("frame_skip", 0), ("frame_skip", "x"), ("frame_skip", 31), ("frame_skip", True)),
        *(("step", -1), ("step", 1.5), ("step", None), ("reward_scale", math.nan)),
        *(("reward_scale", 0), ("reward_scale", math.inf), ("reward_scale", "1"), ("role", 5)),
        *(("role", "king"), ("seed", 2**70), ("seed", "x"), ("parent", 3), ("game", None)),
        *(("game", "x" * 5000), ("game_version", []), ("reward_preset", {}), ("config_hash", 1)),
        *(("cloned_from", 1), ("metrics", {"a": "b"}), ("metrics", []), ("created_at", math.nan)),
        *(("created_at", "now"), ("fingerprint", [math.nan]), ("fingerprint", "123")),
        *(("fingerprint", 5), ("agent", None), ("colour", "red")),
    ],
)
def test_false_fields_of_a_card_are_named(blobs: BlobFolder, name: str, value: object) -> None:
    digest = save_snapshot(blobs, network(DEEP), CARD)
    change = lambda text: json.dumps({**json.loads(text), name: value})  # noqa: E731
    false = rewritten(blobs, digest, change_card=change)
    with pytest.raises(DataCorrupt, match=r"\bcard\b"):
        read_card(blobs, false)
