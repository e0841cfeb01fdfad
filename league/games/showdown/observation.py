"""Encodes a player's view of a Showdown battle as numbers, and names the numbers.

A player sees what the ordinary client shows: its whole team, and the revealed part of the
opponent's team. poke-env keeps track of both.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from poke_env.battle import (
    AbstractBattle,
    Effect,
    Field,
    Move,
    MoveCategory,
    Pokemon,
    PokemonType,
    SideCondition,
    Status,
    Weather,
)
from poke_env.data import GenData

GEN = 9
TEAM, MOVES = 6, 4
STATS = ("hp", "atk", "def", "spa", "spd", "spe")
BOOSTS = ("atk", "def", "spa", "spd", "spe", "accuracy", "evasion")
TYPES = [kind for kind in PokemonType if kind is not PokemonType.THREE_QUESTION_MARKS]
STATUSES = [status for status in Status if status is not Status.FNT]
WEATHERS = [weather for weather in Weather if weather is not Weather.UNKNOWN]
FIELDS = (
    *(Field.ELECTRIC_TERRAIN, Field.GRASSY_TERRAIN, Field.MISTY_TERRAIN, Field.PSYCHIC_TERRAIN),
    *(Field.TRICK_ROOM, Field.GRAVITY, Field.MAGIC_ROOM, Field.WONDER_ROOM),
)
SIDE_CONDITIONS = {
    SideCondition.STEALTH_ROCK: 1,
    SideCondition.SPIKES: 3,
    SideCondition.TOXIC_SPIKES: 2,
    SideCondition.STICKY_WEB: 1,
    SideCondition.REFLECT: 1,
    SideCondition.LIGHT_SCREEN: 1,
    SideCondition.AURORA_VEIL: 1,
    SideCondition.TAILWIND: 1,
    SideCondition.SAFEGUARD: 1,
    SideCondition.MIST: 1,
}
"""Conditions of a side, with the largest number of layers of each."""
EFFECTS = (
    *(Effect.SUBSTITUTE, Effect.CONFUSION, Effect.LEECH_SEED, Effect.ENCORE, Effect.TAUNT),
    *(Effect.DISABLE, Effect.TORMENT, Effect.YAWN, Effect.CURSE, Effect.SALT_CURE),
    *(Effect.AQUA_RING, Effect.INGRAIN, Effect.PARTIALLY_TRAPPED, Effect.TRAPPED),
    *(Effect.FOCUS_ENERGY, Effect.CHARGE, Effect.FLASH_FIRE, Effect.HEAL_BLOCK),
    *(Effect.PERISH1, Effect.PERISH2, Effect.PERISH3, Effect.SLOW_START),
    *(Effect.GLAIVE_RUSH, Effect.MUST_RECHARGE, Effect.MAGNET_RISE, Effect.SMACK_DOWN),
)

POKEMON_IDS = ("species", "ability", "item")
MOVE_NUMBERS = (
    *("power", "accuracy", "pp", "physical", "special", "priority", "stab", "against", "damage"),
)
CONDITION_NUMBERS = (
    *("known", "active", "fainted", "hp", "level", "terastallized", "status_turns", "matchup"),
    *(f"is_{status.name.lower()}" for status in STATUSES),
)
NATURE_NUMBERS = (
    *(f"type_{kind.name.lower()}" for kind in TYPES),
    *(f"tera_{kind.name.lower()}" for kind in TYPES),
    *(f"base_{stat}" for stat in STATS),
)
ACTIVE_NUMBERS = (
    *(f"boost_{stat}" for stat in BOOSTS),
    *("first_turn", "must_recharge", "preparing", "protect_counter"),
    *(f"has_{effect.name.lower()}" for effect in EFFECTS),
)
SIDE_NUMBERS = (
    *(condition.name.lower() for condition in SIDE_CONDITIONS),
    *("used_tera", "alive"),
)
POKEMON_NAMES = (
    *POKEMON_IDS,
    *CONDITION_NUMBERS,
    *NATURE_NUMBERS,
    *(f"move{n}_{name}" for n in range(MOVES) for name in ("id", *MOVE_NUMBERS)),
)
FIELD_NUMBERS = (
    *("turn", "force_switch", "trapped", "can_tera"),
    *(f"weather_{weather.name.lower()}" for weather in WEATHERS),
    *(f"field_{field.name.lower()}" for field in FIELDS),
)
MOST_DAMAGE = 2_000.0
"""Expected damage of a move that is encoded as 1: the move's power times all multipliers."""
UNKNOWN_ITEM = "unknown_item"
BUCKETS = 2048
"""Number of ids of items, and of abilities. poke-env doesn't list their names, so they are hashed.
"""


@cache
def side_names(active: int) -> tuple[str, ...]:
    """Returns the names of the numbers that describe a side. `active` is the number of the side's
    Pokémon that fight at once.

    A fighting Pokémon is written twice: at its position in the team, and at a fixed position, where
    a network finds the available moves without searching.
    """
    return (
        *SIDE_NUMBERS,
        *(f"active{n}_{name}" for n in range(active) for name in (*ACTIVE_NUMBERS, *POKEMON_NAMES)),
        *(f"pokemon{n}_{name}" for n in range(TEAM) for name in POKEMON_NAMES),
    )


@cache
def vocabulary(kind: str) -> dict[str, int]:
    """Returns the ids of all species or moves by name. Ids start at 1."""
    data = GenData.from_gen(GEN)
    names = data.pokedex if kind == "species" else data.moves
    return {name: number for number, name in enumerate(sorted(names), 1)}


@cache
def bucket(name: str) -> int:
    """Returns the id of an item or ability. Ids start at 1. Two names may share an id."""
    return 1 + zlib.crc32(name.encode()) % (BUCKETS - 1)


def sizes() -> dict[str, int]:
    """Returns the number of ids of each kind, including id 0 (unknown or missing)."""
    exact = {kind: 1 + max(vocabulary(kind).values()) for kind in ("species", "move")}
    return exact | {"ability": BUCKETS, "item": BUCKETS}


def id_kind(name: str) -> str | None:
    """Returns the kind of id that the observed number called `name` holds, or None if the number is
    not an id.
    """
    last = name.rpartition("_")[2]
    if not name.startswith(("pokemon", "active")):
        return None
    if last == "id":
        return "move"
    return last if last in POKEMON_IDS and name.count("_") == 1 else None


class Writer:
    """Writes a player's view.

    Species, moves, items and abilities are written as ids. An id is divided by the number of ids of
    its kind, so every number is in [-1, 1].
    """

    def __init__(self, active: int) -> None:
        self.active, self._sizes = active, sizes()

    @property
    def width(self) -> int:
        """The size of a view: the numbers of the field and of both sides."""
        return len(FIELD_NUMBERS) + 2 * len(side_names(self.active))

    def write(self, battle: AbstractBattle, view_V: NDArray[np.float32]) -> None:
        """Writes a battle as its player sees it: the field, its own side, the opponent's side."""
        field, side = len(FIELD_NUMBERS), len(side_names(self.active))
        _write_field(battle, view_V[:field])
        self._write_sides(battle, (view_V[field : field + side], view_V[field + side :]))

    def _write_sides(
        self, battle: AbstractBattle, sides: tuple[NDArray[np.float32], NDArray[np.float32]]
    ) -> None:
        fighting = listed(battle.active_pokemon), listed(battle.opponent_active_pokemon)
        teams = own_team(battle), opponents(battle)
        used = battle.used_tera, battle.opponent_used_tera
        conditions = battle.side_conditions, battle.opponent_side_conditions
        for side, numbers in enumerate(sides):
            numbers[:] = 0.0
            numbers[: len(SIDE_NUMBERS)] = (
                *(
                    _laid(conditions[side].get(condition), most)
                    for condition, most in SIDE_CONDITIONS.items()
                ),
                float(used[side]),
                1.0 - sum(pokemon.fainted for pokemon in teams[side]) / TEAM,
            )
            against = [foe for foe in fighting[1 - side] if foe is not None and not foe.fainted]
            width, start = len(ACTIVE_NUMBERS) + len(POKEMON_NAMES), len(SIDE_NUMBERS)
            for pokemon in fighting[side]:
                if pokemon is not None:
                    split = start + len(ACTIVE_NUMBERS)
                    numbers[start:split] = _active(pokemon)
                    self._write(pokemon, against, numbers[split : start + width])
                start += width
            for pokemon in teams[side][:TEAM]:
                self._write(pokemon, against, numbers[start : start + len(POKEMON_NAMES)])
                start += len(POKEMON_NAMES)

    def _write(
        self, pokemon: Pokemon, against: Sequence[Pokemon], numbers: NDArray[np.float32]
    ) -> None:
        numbers[:3] = (
            self._share("species", vocabulary("species").get(pokemon.species, 0)),
            self._share("ability", bucket(pokemon.ability) if pokemon.ability else 0),
            self._share(
                "item", bucket(pokemon.item) if pokemon.item and pokemon.item != UNKNOWN_ITEM else 0
            ),
        )
        start = 3 + len(CONDITION_NUMBERS)
        numbers[3:start] = (
            *(
                1.0,
                float(pokemon.active or False),
                float(pokemon.fainted),
                pokemon.current_hp_fraction,
            ),
            *(
                pokemon.level / 100.0,
                float(pokemon.is_terastallized),
                min(1.0, pokemon.status_counter / 8.0),
            ),
            _matchup(pokemon, against),
            *(float(pokemon.status is status) for status in STATUSES),
        )
        types = tuple(pokemon.types)
        nature = _nature(
            types, pokemon.tera_type, tuple(pokemon.base_stats[stat] for stat in STATS)
        )
        numbers[start : start + len(NATURE_NUMBERS)] = nature
        start, width = start + len(NATURE_NUMBERS), 1 + len(MOVE_NUMBERS)
        for move in list(pokemon.moves.values())[:MOVES]:
            numbers[start : start + width] = (
                self._share("move", vocabulary("move").get(move.id, 0)),
                *_move(move, pokemon, against),
            )
            start += width

    def _share(self, kind: str, number: int) -> float:
        return number / self._sizes[kind]


def _write_field(battle: AbstractBattle, numbers: NDArray[np.float32]) -> None:
    weather, fields = battle.weather, battle.fields
    numbers[:] = (
        min(1.0, battle.turn / 100.0),
        *(float(any(listed(flag))) for flag in (battle.force_switch, battle.trapped)),
        float(any(listed(battle.can_tera))),
        *(float(kind in weather) for kind in WEATHERS),
        *(float(kind in fields) for kind in FIELDS),
    )


def own_team(battle: AbstractBattle) -> list[Pokemon]:
    """Returns the player's Pokémon that take part in the battle, as in Showdown's last request."""
    side = battle.last_request.get("side", {})
    named = {pokemon["ident"] for pokemon in side.get("pokemon", ())}
    return [pokemon for ident, pokemon in battle.team.items() if ident in named]


def opponents(battle: AbstractBattle) -> list[Pokemon]:
    """Returns the known Pokémon of the opponent, in the order of the team preview if it exists."""
    seen, previewed = list(battle.opponent_team.values()), battle.teampreview_opponent_team
    return [
        next((shown for shown in seen if shown.base_species == pokemon.base_species), pokemon)
        for pokemon in previewed
    ] or seen


def listed(value: Any) -> list[Any]:
    """Returns a list, because poke-env has a single value in singles and a list in doubles."""
    return value if isinstance(value, list) else [value]


def _laid(value: int | None, most: int) -> float:
    """Returns a condition's layers as a share of its maximum.

    poke-env counts layers only for hazards. For other conditions, poke-env's value is the turn in
    which the condition began.
    """
    return 0.0 if value is None else min(1.0, value / most) if most > 1 else 1.0


def _active(pokemon: Pokemon) -> tuple[float, ...]:
    effects, boosts = pokemon.effects, pokemon.boosts
    return (
        *(boosts[stat] / 6.0 for stat in BOOSTS),
        *(float(pokemon.first_turn), float(pokemon.must_recharge), float(bool(pokemon.preparing))),
        min(1.0, pokemon.protect_counter / 4.0),
        *(float(effect in effects) for effect in EFFECTS),
    )


@cache
def _nature(
    types: tuple[PokemonType, ...], tera: PokemonType | None, base_stats: tuple[int, ...]
) -> NDArray[np.float32]:
    numbers = (
        *(kind in types for kind in TYPES),
        *(kind is tera for kind in TYPES),
        *(stat / 255.0 for stat in base_stats),
    )
    return np.array(numbers, np.float32)


def _matchup(pokemon: Pokemon, against: Sequence[Pokemon]) -> float:
    """Returns the type advantage over the fighting opponents, in the worst case.

    The advantage over an opponent is the Pokémon's best damage multiplier minus the opponent's best
    damage multiplier, divided by 4. For example, ×4 against the opponent and ×0 in return give 1.
    """
    return (
        min(
            (
                max(other.damage_multiplier(kind) for kind in pokemon.types if kind)
                - max(pokemon.damage_multiplier(kind) for kind in other.types if kind)
                for other in against
            ),
            default=0.0,
        )
        / 4.0
    )


def _move(move: Move, user: Pokemon, against: Sequence[Pokemon]) -> tuple[float, ...]:
    """Returns the numbers of a move, in the order of `MOVE_NUMBERS`.

    "against" is the best type multiplier against the fighting opponents, on a logarithmic scale
    where ×4 is 1, ×1 is 0, and ×1/4 or less is −1. "damage" is the largest expected damage to one
    of these opponents, on a logarithmic scale where 0 is 0 and MOST_DAMAGE is 1.
    """
    power, accuracy, physical, special, priority, kind = _facts(move.id)
    stab = kind in user.types and power > 0.0
    best, damage = 1.0 if not (power and against) else 0.0, 0.0
    for other in against if power else ():
        multiplier = other.damage_multiplier(kind)
        best = max(best, multiplier)
        hit, held = ("atk", "def") if physical else ("spa", "spd")
        ratio = _strength(user, hit) / _strength(other, held)
        expected = 250.0 * power * accuracy * (1.5 if stab else 1.0) * multiplier * ratio
        damage = max(damage, math.log1p(expected) / math.log1p(MOST_DAMAGE))
    return (
        *(power, accuracy, move.current_pp / max(1, move.max_pp), physical, special, priority),
        *(float(stab), max(-1.0, math.log2(best) / 2.0) if best > 0.0 else -1.0, min(1.0, damage)),
    )


def _strength(pokemon: Pokemon, stat: str) -> float:
    """Estimates a stat from the Pokémon's species and boosts, which are known for both sides."""
    boost = pokemon.boosts[stat]
    return (2 * pokemon.base_stats[stat] + 36) * (max(2, 2 + boost) / max(2, 2 - boost))


@cache
def _facts(move_id: str) -> tuple[float, float, float, float, float, PokemonType]:
    move = Move(move_id, gen=GEN)
    return (
        min(1.0, move.base_power * move.expected_hits / 250.0),
        float(move.accuracy),
        float(move.category is MoveCategory.PHYSICAL),
        float(move.category is MoveCategory.SPECIAL),
        max(-1.0, min(1.0, move.priority / 5.0)),
        move.type,
    )
