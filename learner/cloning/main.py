"""``bin/learner clone``: makes an agent that plays like a player of recorded matches.

The agent is saved as a snapshot file. With ``--matchmaker`` it also joins the league as a member.
The member can be an opponent, the start of a training (``bin/learner --from``) or a reference.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from league.errors import AlreadyExists, ConfigError, InvalidInput
from league.security.credentials import Credentials, add_client_flags, of_run
from league.settings.base import resolve_run

if TYPE_CHECKING:
    from league.agent.snapshot import SnapshotCard
    from league.players import Player

log = logging.getLogger("learner")
COMMAND = "clone"


def parser() -> argparse.ArgumentParser:
    """Makes the parser of the command line that follows the word `clone`."""
    arguments = argparse.ArgumentParser(
        prog="learner clone", description=__doc__, allow_abbrev=False
    )
    add = arguments.add_argument
    add(
        "--replays", required=True, type=Path, metavar="DIR", help="folder of replays to learn from"
    )
    add("--seat", required=True, metavar="NAME", help="the player to clone, as the replays name it")
    target = arguments.add_mutually_exclusive_group(required=True)
    target.add_argument("--out", type=Path, metavar="DIR", help="folder for the snapshot")
    target.add_argument("--run-dir", type=Path, metavar="DIR", help="the run whose blobs it joins")
    add("--matchmaker", metavar="HOST:PORT", help="with --run-dir: make it a member of the league")
    add_client_flags(arguments)
    add("--name", help="its name there (default: clone-NAME)")
    add("--preset", help="settings when no file gives them (default: laptop)")
    add("--config", type=Path, help="settings file; default: config.toml of the run folder")
    add("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", dest="assignments")
    device = arguments.add_mutually_exclusive_group()
    device.add_argument("--gpu", type=int, metavar="N", help="learn on GPU number N")
    device.add_argument(
        "--cpu", action="store_true", help="learn on the CPU even if there is a GPU"
    )
    return arguments


def run(options: argparse.Namespace) -> None:
    """Makes a clone according to the command line, and prints the path of the snapshot's file."""
    if options.matchmaker and options.run_dir is None:
        raise ConfigError(
            "--matchmaker makes the clone a member of a run: name it with --run-dir, not --out"
        )
    name = lineage(options.name, options.seat)
    sections = resolve_run(options.run_dir, options.preset, options.config, options.assignments)
    from learner.settings import LearnerSettings

    threads = sections.of(LearnerSettings).threads
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    import torch

    from league.agent.device import choose_device, keep_memory
    from league.runs.blobs import BlobFolder
    from learner.cloning.training import make_clone

    torch.set_num_threads(threads)
    keep_memory()
    device, sentence = choose_device(options.gpu, options.cpu)
    log.info("%s", sentence)
    blobs = BlobFolder(options.out or options.run_dir / "blobs")
    digest, card = make_clone(
        options.replays, options.seat, sections, blobs, device, lambda line: log.info("%s", line)
    )
    print(blobs.path(digest))
    if options.matchmaker:
        shown = of_run(options.run_dir, "worker", token_file=options.token_file, tls=options.tls)
        _register(options.matchmaker, shown, name, digest, card)
    else:
        log.info("bin/learner --from %s trains on from it", blobs.path(digest))


def lineage(name: str | None, seat: str) -> str:
    """Returns the clone's name without @STEP: `name`, or by default a name made from the cloned
    player's name.

    Raises:
        InvalidName: the name is not allowed for players.
        InvalidInput: the name contains @STEP.
    """
    from league.ids import checked_player_name, lineage_of

    name = name or "clone-" + re.sub(r"[^a-z0-9_.-]+", "-", seat.lower())[:50]
    if lineage_of(checked_player_name(name)):
        raise InvalidInput(
            f"{name} can't name a clone: leave out @ and what follows, the snapshot's step is put "
            "there"
        )
    return name


def member_of(lineage: str, digest: str, card: SnapshotCard) -> Player:
    """Returns a clone as a member of a league."""
    from league.ids import SnapshotName
    from league.players import Player, PlayerKind, Role

    return Player(
        name=str(SnapshotName(lineage, card.step)),
        game=card.game,
        kind=PlayerKind.SNAPSHOT,
        role=Role.CLONE,
        digest=digest,
        step=card.step,
        creator="learner-clone",
        card_json=card.to_json(),
    )


def _register(
    address: str, credentials: Credentials, lineage: str, digest: str, card: SnapshotCard
) -> None:
    from league.rpc.client import MatchmakerClient

    player = member_of(lineage, digest, card)
    with MatchmakerClient(
        address, wait_seconds=30, on_wait=lambda text: log.info("%s", text), credentials=credentials
    ) as client:
        try:
            client.register_players([player])
        except AlreadyExists:
            raise AlreadyExists(
                f"the league has another {player.name} already: give this one another name with "
                f"--name (its weights are kept as {digest[:12]}…)"
            ) from None
    log.info(
        "%s is a member of the league: bin/learner --from %s trains on from it",
        player.name,
        player.name,
    )
