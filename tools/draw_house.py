"""Draw the picture of the house for docs/architecture.md: `python tools/draw_house.py`.

Rooms and their order come from the import layers in pyproject.toml; what each is for stands in
`ROOMS`. A test compares the picture with them, so that it cannot be older.
"""

from __future__ import annotations

import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "images" / "house.svg"
ROOMS = {
    "engine": "blocks of work, threads, Dask, files",
    "data": "arrays, tables, folders of images",
    "encode": "laws of weights, simulated releases",
    "paper": "Algorithms 1 to 4, as printed and fast",
    "certificate": "the only room that says “verified”",
    "exact": "equations and similarities, any data",
    "mixing": "signs kept, or weights drawn anew",
    "images": "natural images: signs as smooth fields",
    "rivals": "cliques, line graph, tensor, classical",
    "scoring": "held against the truth",
    "auditing": "a release: attackers, trials, verdict",
    "report": "one HTML file",
    "cli": "the command line",
}
FLOORS = {"read": "#cfe6f5", "solve": "#d7eedd", "attack": "#fbe3cf", "tell": "#ece0f3"}
"""Colours of the four kinds of room, light enough for black text."""
KIND = {
    **dict.fromkeys(("engine", "data", "encode", "certificate"), "read"),
    **dict.fromkeys(("paper", "exact"), "solve"),
    **dict.fromkeys(("images", "rivals", "mixing"), "attack"),
    **dict.fromkeys(("scoring", "auditing", "report", "cli"), "tell"),
}
TITLES = {
    "read": "what is released, and what is proved",
    "solve": "attacks that others build on",
    "attack": "attacks side by side",
    "tell": "what it means",
}
WIDTH, HEIGHT, GAP, TOP = 256, 62, 14, 40
"""Of a room, between rooms, and above the first: in pixels."""


def layers() -> list[str]:
    """Rooms from the first to the last, as the import layers have them."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    flow = config["tool"]["importlinter"]["contracts"][0]["layers"]
    names = [re.findall(r"unveil\.(\w+)", layer) for layer in reversed(flow)]
    # A room may be in several layers; it stands where its first part does.
    return list(dict.fromkeys(name for group in names for name in group if name in ROOMS))


def svg() -> str:
    """One column per kind of room, read from left to right and from top to bottom."""
    columns = {kind: [room for room in layers() if KIND[room] == kind] for kind in FLOORS}
    tallest = max(map(len, columns.values()))
    width = len(columns) * (WIDTH + 3 * GAP) + GAP
    height = TOP + tallest * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#555"/></marker></defs>',
    ]
    for place, (kind, rooms) in enumerate(columns.items()):
        x = GAP + place * (WIDTH + 3 * GAP)
        parts.append(f'<text x="{x}" y="24" font-size="14" fill="#555">{TITLES[kind]}</text>')
        for row, room in enumerate(rooms):
            y = TOP + row * (HEIGHT + GAP)
            parts += [
                f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8" '
                f'fill="{FLOORS[kind]}" stroke="#888"/>',
                f'<text x="{x + 12}" y="{y + 25}" font-size="16" font-weight="bold">{room}</text>',
                f'<text x="{x + 12}" y="{y + 46}" font-size="11.5">{escape(ROOMS[room])}</text>',
            ]
            # Attacks that stand side by side do not import each other.
            if row + 1 < len(rooms) and kind != "attack":
                middle = x + WIDTH / 2
                parts.append(_arrow(middle, y + HEIGHT, middle, y + HEIGHT + GAP))
        if place + 1 < len(columns):
            last = TOP + (len(rooms) - 1) * (HEIGHT + GAP) + HEIGHT / 2
            turn, end = x + WIDTH + 1.5 * GAP, x + WIDTH + 3 * GAP
            parts.append(
                f'<path d="M{x + WIDTH} {last} H{turn} V{TOP + HEIGHT / 2} H{end}" fill="none" '
                'stroke="#555" stroke-width="1.5" marker-end="url(#tip)"/>'
            )
    return "\n".join([*parts, "</svg>", ""])


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#555" stroke-width="1.5" '
        'marker-end="url(#tip)"/>'
    )


if __name__ == "__main__":
    OUT.write_text(svg(), encoding="utf-8")
