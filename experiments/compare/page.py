"""The comparison in words, rows and Markdown, from its numbers alone
(`experiments/compare/run.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from experiments.cells import Facts
from experiments.section import table

LEVEL = 0.005
"""Shares closer than this are level: half a percent is less than one vector of any family."""
MEASURES = {
    "exact": "private vectors, exact and verified",
    "close": "private vectors, correlation above 0.9",
    "ssim": "mean SSIM of private images, from as many returned ones",
    "public": "encodings with all their public vectors",
}
SHORT = {"refused": "–", "limit": "over limit", "crashed": "crashed"}
INTRODUCTION = """# Which attack wins, where, at what cost?

`python -m experiments.compare --full --out docs` measures and writes this page; without `--full`
a quick version with two draws. `--attack` and `--family` choose. An interrupted run goes on where
it stopped. Every attack runs in a process of its own. What they do: [Attacks](attacks.md).
"""


def rows(facts: Facts) -> list[Facts]:
    """One line per attack and family, for CSV."""
    names = (
        "attack",
        "family",
        "outcome",
        "share",
        "exact",
        "close",
        "ssim",
        "wrong",
        "seconds",
        "mib",
        "ran",
        "reason",
    )
    return [{name: result.get(name, "") for name in names} for result in facts["results"]]


def verdict(facts: Facts) -> str:
    """Who is best in how many families, and whether anything wrong was called verified. One
    paragraph."""
    attacks, best = facts["asked"]["attacks"], winners(facts)
    decided = {name: who for name, who in best.items() if who}
    # 1. One clause for each attack, the most successful first.
    sentences: list[str] = []
    never: list[str] = []
    for attack in sorted(
        attacks, key=lambda attack: -sum(attack in who for who in decided.values())
    ):
        alone = sum(who == [attack] for who in decided.values())
        level = sum(attack in who for who in decided.values()) - alone
        parts = [f"wins {alone}"] if alone else []
        parts += [f"is level with others in {level}"] if level else []
        if parts:
            parts[0] += "" if sentences else f" of {len(best)} families"
            sentences.append(f"{attack} {' and '.join(parts)}")
        else:
            never.append(attack)
    if never and sentences:
        sentences.append(f"never best: {', '.join(never)}")
    if len(attacks) == 1:  # nobody to win against
        sentences = (
            [f"{attacks[0]} recovers something in {len(decided)} of {len(best)} families"]
            if decided
            else []
        )
    text = "; ".join(sentences) or (
        "Nothing was recovered in any family" if best else "No family was asked for"
    )
    # 2. Wrong results are the worst bug there is: they are always told.
    wrong = {
        attack: sum(
            result["wrong"]
            for result in facts["results"]
            if result["attack"] == attack and "wrong" in result
        )
        for attack in attacks
    }
    bad = [f"{attack} {count}" for attack, count in wrong.items() if count]
    text += f". Wrong results called verified: {', '.join(bad) or 'none'}."
    return text


def winners(facts: Facts) -> dict[str, list[str]]:
    """For each family the attacks with the largest share; none where nothing was recovered. Wrong
    results disqualify."""
    out: dict[str, list[str]] = {}
    for name in _families(facts):
        ran = [
            r
            for r in facts["results"]
            if r["family"] == name and r["outcome"] == "ran" and not r["wrong"]
        ]
        most = max((result["share"] for result in ran), default=0.0)
        out[name] = [r["attack"] for r in ran if r["share"] >= most - LEVEL] if most > 0 else []
    return out


def matrix(facts: Facts, cell: Callable[[Facts], str]) -> tuple[list[str], list[list[str]]]:
    """Families down, attacks across, in the order of the verdict."""
    found = {(r["family"], r["attack"]): r for r in facts["results"]}
    best = winners(facts).values()
    attacks = sorted(
        facts["asked"]["attacks"], key=lambda attack: -sum(attack in who for who in best)
    )
    return ["family", *attacks], [
        [name, *(cell(found[name, attack]) for attack in attacks)] for name in _families(facts)
    ]


def share(result: Facts) -> str:
    """What was recovered, as it stands in a table."""
    wrong = f", {result['wrong']} wrong" if result.get("wrong") else ""
    if result["outcome"] != "ran":
        return SHORT[result["outcome"]] + wrong
    return (
        f"{result['share']:.2f}" if "ssim" in result else f"{100 * result['share']:.0f}%"
    ) + wrong


def seconds(result: Facts) -> str:
    if result["outcome"] != "ran":
        return SHORT[result["outcome"]]
    return f"{result['seconds']:.2f}" if result["seconds"] < 1 else f"{result['seconds']:.1f}"


def page(facts: Facts, folder: str) -> str:
    """In Markdown; the figures lie in `folder` beside it."""
    parts = [INTRODUCTION, f"**{verdict(facts)}**\n"]
    if facts["families"]:
        parts += ["## What was recovered\n", _legend(facts), _markdown(facts, share, bold=True)]
        parts += ["## Families\n", _about(facts)]
        parts += [
            "## Seconds\n",
            "Median over draws, one BLAS thread, loading of compiled code left out.\n",
            _markdown(facts, seconds),
        ]
    if any("share" in diagram for diagram in facts["diagrams"]):
        parts += ["## Phase diagrams\n", _diagrams(facts, folder)]
    command = (
        "python -m experiments.compare"
        + (" --full" if facts["full"] else "")
        + f" --seed {facts['seed']}"
    )
    quick = "" if facts["full"] else " Quick version: few draws."
    parts.append(
        f"`{command}`, at most {facts['limit']:g} s for an attack on an instance.{quick}\n"
    )
    return "\n".join(parts)


def _families(facts: Facts) -> list[str]:
    """In the order of asking; JSON sorts them."""
    return [name for name in facts["asked"]["families"] if name in facts["families"]]


def _legend(facts: Facts) -> str:
    return (
        f"Shares, means over {facts['draws']} draws; of what, the next table says. "
        "Bold: the most, if anything was recovered. –: does not apply; `compare.csv` has "
        "the reason and the memory. A vector that one encoding alone uses cannot be recovered by "
        "anyone, so 100% is not always possible.\n"
    )


def _markdown(facts: Facts, cell: Callable[[Facts], str], bold: bool = False) -> str:
    heads, lines = matrix(facts, cell)
    # In bold whoever recovered most; nobody where nothing was.
    best = winners(facts) if bold else {}
    for line in lines:
        for place, attack in enumerate(heads[1:], start=1):
            if attack in best.get(line[0], []):
                line[place] = f"**{line[place]}**"
    return table(heads, lines)


def _about(facts: Facts) -> str:
    known = facts["families"]
    lines = [
        [n, known[n]["sentence"], known[n]["size"], MEASURES[known[n]["measure"]]]
        for n in _families(facts)
    ]
    return table(["family", "", "size", "share of"], lines)


def _diagrams(facts: Facts, folder: str) -> str:
    attacks = _distinct(diagram["attack"] for diagram in facts["diagrams"] if "share" in diagram)
    common = _distinct(
        diagram["attack"]
        for diagram in facts["diagrams"]
        if diagram["ground"] in ("k = 2", "k = 3")
    )
    text = (
        "Share of private vectors recovered exactly, over encodings and pixels; one scale for all. "
        "Dashed: from here on every private vector is used twice on average, without which nobody "
        "recovers all. Grey: over the limit. An attack that returns few vectors by design stays "
        "dark.\n\n"
    )
    if len(common) > 1:
        text += f"![Phase diagrams of {', '.join(common)}]({folder}/compare-phase.svg)\n\n"
    return text + "\n".join(
        f"![Phase diagram of {name}]({folder}/compare-phase-{name}.svg)\n" for name in attacks
    )


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
