"""Draws a frame of a match in the terminal: a fight as a picture, other games as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.align import Align
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from league.games.brawl import rules
from league.games.drawing import is_fight
from league.games.drawing.lines import frame_lines

COLOURS = ("bright_red", "bright_cyan")
STATES = {
    rules.WALKING: "walks",
    rules.STANDING: "stands",
    rules.TURNAROUND: "turns",
    rules.AIR_TURNAROUND: "turns in the air",
    rules.SPRINTING: "sprints",
    rules.STUN: "stunned",
    rules.IN_AIR: "in the air",
    rules.DODGE: "dodges",
    rules.ATTACK: "attacks",
    rules.DASH: "dashes",
    rules.BACKDASH: "dashes back",
    rules.KO: "knocked out",
    rules.TAUNT: "taunts",
}
MOVES = {"N": "neutral", "D": "down", "S": "side"}
KINDS = {"Light": "light", "Sig": "heavy", "Air": "air light"}
WEAPONS = {"spear": "↑", "hammer": "T"}
VIEW_WIDTH, VIEW_TOP, VIEW_BOTTOM = 20.0, -6.0, 7.5
"""The part of the stage that is drawn, in units, centred."""

WIDEST = 100
FRAME_ROWS, FRAME_COLUMNS = 4, 10
"""Cells of the panel's border with its padding."""

Cell = tuple[str, str]


class Canvas:
    """A grid of styled characters over stage units. Characters are about twice as high as wide."""

    def __init__(self, columns: int, rows: int) -> None:
        height = VIEW_BOTTOM - VIEW_TOP
        self.per_unit = min(columns / VIEW_WIDTH, 2 * rows / height)
        self.columns = int(VIEW_WIDTH * self.per_unit)
        self.rows = int(height * self.per_unit / 2)
        self._cells: list[list[Cell]] = [[(" ", "")] * self.columns for _ in range(self.rows)]

    def place(self, x: float, y: float) -> tuple[int, int]:
        """Column and row of a point of the stage."""
        return int((x + VIEW_WIDTH / 2) * self.per_unit), int((y - VIEW_TOP) * self.per_unit / 2)

    def put(self, column: int, row: int, character: str, style: str) -> None:
        """Sets one cell, if it is inside the picture."""
        if 0 <= column < self.columns and 0 <= row < self.rows:
            self._cells[row][column] = (character, style)

    def fill(
        self, left: float, top: float, right: float, bottom: float, character: str, style: str
    ) -> None:
        """A rectangle in units, at least one cell wide and high."""
        first_column, first_row = self.place(left, top)
        last_column, last_row = self.place(right, bottom)
        for row in range(first_row, max(last_row, first_row + 1)):
            for column in range(first_column, max(last_column, first_column + 1)):
                self.put(column, row, character, style)

    def text(self) -> Text:
        lines = []
        for row in self._cells:
            line = Text()
            for character, style in row:
                line.append(character, style)
            lines.append(line)
        return Text("\n").join(lines)


def draw(
    frame: Mapping[str, Any], names: Sequence[str], events: Sequence[str], size: tuple[int, int]
) -> Group:
    """The whole picture of a frame.

    Args:
        frame: as the game draws it.
        names: of the two seats.
        events: what happened so far, the newest last.
        size: columns and rows of the terminal.
    """
    draw_frame = draw_fight if is_fight(frame) else draw_table
    return draw_frame(frame, names, events, size)


def draw_fight(
    frame: Mapping[str, Any], names: Sequence[str], events: Sequence[str], size: tuple[int, int]
) -> Group:
    """Stage, platform, fighters, and their states in words."""
    columns, rows = size
    canvas = Canvas(columns - 4, max(8, rows - 13))
    draw_stage(canvas, frame)
    for seat, player in enumerate(frame["players"]):
        draw_fighter(canvas, player, COLOURS[seat])
    seconds = (frame["max_frames"] - frame["frame"]) / rules.FRAMES_PER_SECOND
    clock = f"{frame['stage']}   {seconds // 60:.0f}:{seconds % 60:04.1f} left"
    picture = Panel(Align.center(canvas.text()), title=clock, border_style="grey50")
    log = Text("\n".join(events[-3:]) or " ", style="grey70")
    return Group(_corner_table(frame, names), picture, log)


def draw_stage(canvas: Canvas, frame: Mapping[str, Any]) -> None:
    """Grounds, the moving platform, and weapons on the ground (dim until they can be taken)."""
    for left, top, right, bottom in frame["solids"]:
        canvas.fill(left, top, right, bottom, "▒", "grey37")
        canvas.fill(left, top, right, top, "▀", "grey74")
    platform = frame["platform"]
    x, y, half = platform["x"], platform["y"] - platform["half_height"], platform["half_width"]
    canvas.fill(x - half, y, x + half, y, "━", "yellow")
    for weapon in frame["weapons"]:
        style = "bold bright_yellow" if weapon["ready"] else "grey58"
        canvas.put(*canvas.place(weapon["x"], weapon["y"]), WEAPONS[weapon["type"]], style)


def draw_fighter(canvas: Canvas, player: Mapping[str, Any], colour: str) -> None:
    """A body and the direction it faces; an arrow at the rim when it is out of the picture."""
    if player["state"] == rules.KO:
        return
    column, row = canvas.place(player["x"], player["y"])
    if not (0 <= column < canvas.columns and 0 <= row < canvas.rows):
        rim_column = min(max(column, 0), canvas.columns - 1)
        rim_row = min(max(row, 0), canvas.rows - 1)
        canvas.put(rim_column, rim_row, _arrow(column, row, canvas), f"bold {colour}")
        return
    style = {rules.STUN: f"{colour} reverse", rules.DODGE: f"dim {colour}"}.get(
        player["state"], colour
    )
    width, height = max(2, round(canvas.per_unit)), max(1, round(canvas.per_unit / 2))
    for line in range(height):
        for across in range(width):
            canvas.put(column + across - width // 2, row + line - height // 2, _body(player), style)
    face = ">" if player["facing"] > 0 else "<"
    canvas.put(column, row, face, f"bold {style}")
    if player["weapon"] in WEAPONS:
        side = width // 2 if player["facing"] > 0 else -(width // 2) - 1
        canvas.put(column + side, row, WEAPONS[player["weapon"]], "bold bright_yellow")
    if player["state"] == rules.ATTACK:
        reach = player["x"] + player["facing"] * (rules.HALF_WIDTH + 0.5)
        canvas.put(canvas.place(reach, 0)[0], row, "✶", f"bold {colour}")


def _body(player: Mapping[str, Any]) -> str:
    return {rules.STUN: "▚", rules.DODGE: "░"}.get(player["state"], "█")


def _arrow(column: int, row: int, canvas: Canvas) -> str:
    if row < 0:
        return "▲"
    if row >= canvas.rows:
        return "▼"
    return "◀" if column < 0 else "▶"


def _corner_table(frame: Mapping[str, Any], names: Sequence[str]) -> RenderableType:
    table = Table.grid(expand=True)
    table.add_column(ratio=1)
    table.add_column(ratio=1, justify="right")
    table.add_row(
        *(_fighter_card(p, names[seat], COLOURS[seat]) for seat, p in enumerate(frame["players"]))
    )
    return table


def _fighter_card(player: Mapping[str, Any], name: str, colour: str) -> Text:
    """Name, stocks, damage, state and keys."""
    stocks = "●" * player["stocks"] + "○" * (rules.STOCKS - player["stocks"])
    heat = (
        "white" if player["damage"] < 60 else "yellow" if player["damage"] < 120 else "bright_red"
    )
    card = Text()
    card.append(f" {name} ", f"bold black on {colour}")
    card.append(f"  {stocks}  ", colour)
    card.append(f"damage {player['damage']:.0f}\n", f"bold {heat}")
    armed = f" with a {player['weapon']}" if player["weapon"] in WEAPONS else ""
    card.append(f" {describe(player)}{armed}\n", "white")
    card.append(f" {' '.join(player['keys']) or 'no key'} ", "grey58")
    return card


def describe(player: Mapping[str, Any]) -> str:
    """The fighter's state in words: "attacks (side light)"."""
    state = STATES.get(player["state"], "?")
    if player["state"] == rules.ATTACK and player["move"]:
        return f"{state} ({move_name(player['move'])})"
    if player["state"] == rules.STUN:
        return f"{state} for {player['stun_left']} frames"
    return state


def move_name(move: str) -> str:
    """The move "SLight" as "side light"; names of one word in lower case."""
    if move[0] in MOVES and move[1:] in KINDS:
        return f"{MOVES[move[0]]} {KINDS[move[1:]]}"
    return move.lower()


def draw_table(
    frame: Mapping[str, Any], names: Sequence[str], events: Sequence[str], size: tuple[int, int]
) -> Group:
    """A card, matrix or board game: the seats, open cards, and the last choices."""
    columns, rows = size
    lines = frame_lines(frame, names)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for line in lines:
        label = Text(line.label, "grey58" if line.seat is None else f"bold {COLOURS[line.seat]}")
        grid.add_row(label, Text(line.text))
    width = min(columns, WIDEST)
    panel = Panel(grid, title=frame.get("game"), width=width, padding=(1, 2), border_style="grey37")
    beside = width - FRAME_COLUMNS - max((len(line.label) for line in lines), default=0)
    taken = sum(max(1, -(-len(line.text) // max(1, beside))) for line in lines)
    room = max(0, rows - taken - FRAME_ROWS)
    newest = events[-room:] if room else []
    return Group(
        panel, *(Text(f" {event}", "grey74", no_wrap=True, overflow="ellipsis") for event in newest)
    )
