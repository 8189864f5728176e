"""`python -m experiments.reproduce [ITEM|all] [--full]`: measure an item, write its numbers,
figures and rows, and the page that tells of all items there are.

OUT/figures/reproduce-ITEM.{json,csv,svg,png}, OUT/reproduce.md, and OUT/.cells with what is
finished of an item under way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click
from experiments.cells import Cells, Facts
from experiments.drawing import Figures, save, style
from experiments.section import Section, table
from pandas import json_normalize

from unveil._version import __version__
from unveil.checks import InputError
from unveil.engine import files
from unveil.records import Progress

INTRODUCTION = """# The paper's numbers and figures, measured again

`python -m experiments.reproduce all --full` measures everything on this page anew and writes it; \
without `--full` a quick version, a few
minutes on two cores, with fewer draws and smaller settings. \
`python -m experiments.reproduce utility` \
does one item. An interrupted run goes
on where it stopped; the same seed gives the same numbers, times excepted. \
Every number below comes from the JSON beside its
figure; the CSV files have the same in rows.
"""


class Item(NamedTuple):
    """One thing the paper reports. measure, in one module; draw and section, in the same or in one
    for the page."""

    measure: Callable[[Cells, bool], Facts]
    draw: Callable[[Facts], Figures]
    section: Callable[[Facts], Section]


class Result(NamedTuple):
    """What an item came to, and the files that tell of it."""

    section: Section
    files: tuple[Path, ...]


# Where an item is measured, and where its figure and words are made.
HOMES = {
    "utility": ("utility", "utility_page"),
    "learn-public": ("learn_public", "learn_public"),
    "sample-complexity": ("sample_complexity", "sample_complexity_page"),
    "gram-accuracy": ("gram_accuracy", "gram_accuracy"),
    "run-time": ("run_time", "run_time"),
}
ITEMS = tuple(HOMES)


def item(name: str) -> Item:
    """The item of this name; its modules load now."""
    if name not in HOMES:
        raise InputError(f"no item {name!r}: choose one of {', '.join(ITEMS)}, or all")
    measured, told = (import_module(f"experiments.paper.{home}") for home in HOMES[name])
    return Item(measured.measure, told.draw, told.section)


def reproduce(
    name: str, out: Path, *, full: bool = False, seed: int = 0, progress: Progress | None = None
) -> Result:
    """Measure one item and write everything about it under `out`; the page there gets its
    section."""
    it = item(name)
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    found = it.measure(Cells(name, seed, out / ".cells", progress), full)
    facts = {"item": name, "full": full, "seed": seed, "unveil": __version__, **found}
    # Files appear together, or not at all.
    with files.whole_set(folder) as part:
        base = part / f"reproduce-{name}"
        files.write_text(base.with_suffix(".json"), json.dumps(facts, sort_keys=True) + "\n")
        files.write_csv(base.with_suffix(".csv"), rows(facts))
        with style():
            for suffix, figure in it.draw(facts).items():
                save(figure, part / f"reproduce-{name}{suffix}")
        written = tuple(folder / file.name for file in sorted(part.iterdir()))
    files.write_text(out / "reproduce.md", page(folder))
    return Result(it.section(facts), (*written, out / "reproduce.md"))


def rows(facts: Facts) -> list[Facts]:
    """One row for each point that was measured, or for each step of a curve; facts within facts get
    names with a dot."""
    measured = next(facts[name] for name in ("points", "curves", "cells") if name in facts)
    frame = json_normalize(measured)
    lists = [name for name in frame if isinstance(frame[name].iloc[0], list)]
    frame = frame.drop(columns=[name for name in lists if "." in name])
    steps = [name for name in lists if "." not in name]
    if steps:
        frame = frame.explode(steps)
        frame["step"] = frame.groupby(level=0).cumcount() + 1
    out: list[Facts] = frame.to_dict("records")
    return out


def page(folder: Path) -> str:
    """The page, in Markdown, from the numbers in `folder`; it stands beside that folder. From files
    alone: items that were measured earlier keep their place on the page."""
    found = {
        name: files.read_json(path)
        for name in ITEMS
        if (path := folder / f"reproduce-{name}.json").is_file()
    }
    sections = {name: item(name).section(facts) for name, facts in found.items()}
    claims = [[section.claim, section.verdict] for section in sections.values()]
    parts = [_markdown(name, section, found[name], folder) for name, section in sections.items()]
    return "\n".join([INTRODUCTION, table(["the paper says", "verdict"], claims), *parts])


def _markdown(name: str, section: Section, facts: dict[str, Any], folder: Path) -> str:
    size = "" if facts["full"] else " Quick version: few draws, wide intervals."
    parts = [
        f"## {section.title}\n",
        f"*The paper:* {section.claim}\n",
        f"*Measured:* {section.ours}\n",
        f"*Verdict:* **{section.verdict}**\n",
    ]
    for suffix, text in (section.captions or {"": section.title}).items():
        parts.append(f"![{text}]({folder.name}/reproduce-{name}{suffix}.svg)\n")
    command = f"`python -m experiments.reproduce {name}{' --full' if facts['full'] else ''} "
    command += f"--seed {facts['seed']}`, measured with Unveil {facts['unveil']}.{size}\n"
    return "\n".join([*parts, section.body, command])


@click.command()
@click.argument("name", default="all", metavar=f"[{'|'.join(ITEMS)}|all]")
@click.option("--full", is_flag=True, help="The real thing, half an hour; else a few minutes.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("unveil-reproduce"))
@click.option("--seed", type=click.IntRange(0), default=0, help="Same seed, same numbers.")
def main(name: str, full: bool, out: Path, seed: int) -> None:
    """Measure what the paper reports, and say where we agree; writes OUT/reproduce.md."""
    for one in ITEMS if name == "all" else (name,):
        section = reproduce(one, out, full=full, seed=seed).section
        click.echo(f"{section.title}\n  The paper: {section.claim}\n  Measured:  {section.ours}")
        click.echo(f"  {section.verdict}")
    click.echo(f"Page: {out / 'reproduce.md'}")


if __name__ == "__main__":
    main()
