"""`python -m experiments.compare`: which attack wins, where, at what cost?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.compare.run import compare


@click.command()
@click.option("--attack", "attacks", multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--family", "families", multiple=True, help="Only these instances; 'phase': diagrams."
)
@click.option("--full", is_flag=True, help="Four draws and fine diagrams, half an hour.")
@click.option("--limit", type=float, help="Seconds for an attack on one instance.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("unveil-compare"))
@click.option("--seed", type=click.IntRange(0), default=0, help="Same seed, same instances.")
def main(out: Path, **options: Any) -> None:
    """Every attack on every family of instances, each in a process of its own; writes
    OUT/compare.md, and goes on where it stopped."""
    click.echo(compare(out, **options).verdict)
    click.echo(f"Page: {out / 'compare.md'}")


if __name__ == "__main__":
    main()
