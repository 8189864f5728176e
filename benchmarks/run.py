"""`make bench`: every table, each compared with a peer in the same run. Name some to run only
those."""

from __future__ import annotations

import importlib
import sys

TABLES = {
    "absolute": "The absolute value of one encoding",
    "floral_search": "Finding florals",
    "hostile": "Hostile instances: nothing wrong may be verified (2,000 of them)",
    "images": "Natural images: three of the cells of `python -m benchmarks.images` (seed 95000)",
    "learn_public": "LearnPublic: every support exact, and honest where it cannot be",
    "line_graph": "The root of a line graph, and the attack with it (fresh seed 40000)",
    "mixup": "MixUp: encodings with signs (fresh seeds 50000, 50001, …)",
    "overlaps": "The overlap engine",
    "paper_attack": "The paper's attack, end to end (fresh seeds 10000, 10001, …)",
    "phase_retrieval": "Classical phase retrieval: exact, by pixels per public vector",
}


def main(names: list[str]) -> int:
    from benchmarks.table import show

    unknown = set(names) - set(TABLES)
    if unknown:
        sys.exit(
            f"no benchmark called {', '.join(sorted(unknown))}: choose from {', '.join(TABLES)}"
        )
    failed = 0
    for name in names or TABLES:
        rows = importlib.import_module(f"benchmarks.{name}").rows()
        show(TABLES[name], rows)
        failed += sum(row[3] is False for row in rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
