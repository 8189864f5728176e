"""`make bench`: every table, each compared with a peer in the same run. Name some to run only
those."""

from __future__ import annotations

import importlib
import sys

TABLES = {
    "images": "Natural images: three of the cells of `python -m benchmarks.images` (seed 95000)",
    "cliques": "Cliques and flow beside the full attack (fresh seed 52000)",
    "floral_search": "Finding florals",
    "full_attack": "The full attack: every private vector, their number unknown (fresh seeds 20000, 20001, …)",
    "frontier": "The frontier of the full attack, as stored by `python -m benchmarks.frontier`",
    "full_large": "The full attack on many encodings (fresh seeds 30000, 30001, …)",
    "full_unequal": "The full attack: unequal weights, unknown and new in every encoding (fresh seeds 30000, 30001, …)",
    "hostile": "Hostile instances: nothing wrong may be verified (2,000 of them)",
    "learn_public": "LearnPublic: every support exact, and honest where it cannot be",
    "line_graph": "The root of a line graph, and the attack with it (fresh seed 40000)",
    "nothing": "Nothing to find, and how soon that is said (fresh seed 78000)",
    "overlaps": "The overlap engine",
    "relations": "Exact relations: any data, nothing told (fresh seeds 60000, 60001, …)",
    "report": "The report in headless Chromium",
    "tensor": "Tensor decomposition: encodings needed, from true overlaps (fresh seeds 70000, 70001, …)",
    "scale": "Cost model of the overlap engine: check and forecast",
    "plan": "The plan against reality",
    "mixup": "MixUp: encodings with signs (fresh seeds 50000, 50001, …)",
    "phase_retrieval": "Classical phase retrieval: exact, by pixels per public vector",
    "absolute": "The absolute value of one encoding",
    "paper_attack": "The paper's attack, end to end (fresh seeds 10000, 10001, …)",
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
