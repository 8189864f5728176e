"""The tables of docs/measured.md: `python -m tools.make_measured` writes them.

Every number comes from benchmarks/measured.json, which `python -m benchmarks.golden --write
benchmarks/measured.json` measures. A test makes the page again and compares, so that no number in
it can be stale.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "measured.md"
STORE = ROOT / "benchmarks" / "measured.json"

VECTORS = {
    "gaussian k=2": "k = 2, m = 500, d = 3,072",
    "gaussian k=3": "k = 3",
    "gaussian k=4": "k = 4",
    "gaussian k=6": "k = 6, d = 3,072",
    "gaussian d=10": "k = 2, ten values each",
    "gaussian d=24": "k = 2, 24 values each",
    "gaussian m=2n k=2": "k = 2, two encodings per record",
    "gaussian m=2n k=3": "k = 3, two encodings per record",
    "gaussian m=2n k=4": "k = 4, two encodings per record, d = 3,072",
    "gaussian public 2": "k = 2, two of 1,000 public vectors in each",
    "gaussian public 4": "k = 2, four of 1,000 public vectors in each, d = 2,000",
    "gaussian n=1000": "k = 2, 1,000 records, m = 7,000, d = 3,072",
    "gaussian n=10000": "k = 2, 10,000 records, m = 70,000, d = 3,072",
    "noise .05": "k = 2, noise 0.05",
    "noise .2": "k = 2, noise 0.2",
    "noise .4": "k = 2, noise 0.4",
    "mixup equal": "signs kept, equal weights, m = 400, d = 200",
    "half-normal": "half-normal weights, 30 records, m = 600, d = 2,000",
    "texthide": "TextHide, eight masks, 60 records, m = 1,500, d = 256",
}
DATA = {
    "breast cancer n=100": "breast cancer, 100 records of 30 columns",
    "breast cancer whole": "breast cancer, all 569 records",
    "wine": "wine, all 178 records of 13 columns",
    "diabetes": "diabetes, 100 records of 10 columns",
    "digits": "digits, 100 images of 8×8",
    "whole numbers": "whole numbers: 100 records of 8 counts and grades",
    "binary columns": "175 records of 4 measured columns and 5 of yes or no",
    "breast cancer k=3": "breast cancer, k = 3, 40 records, m = 600",
    "cifar k=2": "CIFAR-10 as plain vectors, 100 records",
    "cifar k=3": "CIFAR-10, k = 3, 30 records, m = 630",
    "fashion k=2": "Fashion-MNIST, 60 records",
    "not negative": "CIFAR-10 in [0, 1]: no sign to hide",
    "float16 table": "breast cancer, 80 records, encodings in half precision",
    "8 bits cifar": "CIFAR-10, 60 records, encodings in 8 bits",
    "noise .01 table": "breast cancer, noise 0.01",
    "mixup dirichlet table": "breast cancer, signs kept, weights drawn anew",
}
PAPER = {
    "paper k=2": "Algorithm 4: k = 2, n = 100, m = 800, d = 3,072; of k + 2 records",
    "paper k=3": "Algorithm 4: k = 3, n = 20, m = 1,000, d = 6,000",
    "paper k=2 public": "Algorithm 4: two of 300 public vectors, n = 60, m = 600, d = 6,000",
    "learn_public": "LearnPublic in three of the paper's settings; supports of 60",
    "learn_public few pixels": "LearnPublic: 4 of 10,000 public vectors, d = 900",
    "gram_extract k=2": "GramExtract: overlaps of 1,500 encodings of 200 records",
    "florals k=3": "FindFloralSubmatrix: k = 3, n = 30, m = 2,500; found",
}
IMAGES = {
    "photographs": "16 photographs",
    "photographs grey": "16 photographs, grey",
    "faces": "20 faces, grey",
    "flips": "16 photographs, grey, mirrored at random",
    "labels": "16 photographs with labels",
    "crops per epoch": "16 photographs, cropped and mirrored once per epoch",
    "no public part": "16 photographs, no public images",
    "challenge": "100 photographs in 5,000 encodings, the size of the challenge",
}


def lowest(runs: list[dict[str, Any]], key: str) -> Any:
    values = [run[key] for run in runs if key in run]
    return min(values) if values else None


def row(result: dict[str, Any]) -> list[str]:
    """Right, verified, wrong, open values, seconds, memory."""
    runs = result["runs"]
    of, verified, opened = lowest(runs, "of"), lowest(runs, "verified"), lowest(runs, "open")
    right = f"{lowest(runs, 'right'):,}" + (f"/{of:,}" if of else "")
    seconds = "over the limit" if any("late" in run for run in runs) else ""
    return [
        right,
        "–" if verified is None else f"{verified:,}",
        str(max(run.get("wrong", 0) for run in runs)),
        "–" if not opened else f"{100 * max(run.get('open', 0) for run in runs):.1f}%",
        seconds or f"{median(run['cpu'] for run in runs):.1f}",
        f"{result['gib']:.1f} GiB" if result["gib"] else "–",
    ]


def table(stored: dict[str, Any], names: dict[str, str]) -> str:
    heads = ["case", "right", "verified", "wrong", "open values", "CPU s", "memory"]
    lines = [heads, ["---"] * len(heads)]
    lines += [[words, *row(stored[name])] for name, words in names.items() if name in stored]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def image_table(stored: dict[str, Any]) -> str:
    heads = ["case", "SSIM above 0.5", "mean SSIM", "CPU s", "memory"]
    lines = [heads, ["---"] * len(heads)]
    for name, words in IMAGES.items():
        if name not in stored or "ssim" not in stored[name]["runs"][0]:
            continue
        runs = stored[name]["runs"]
        ssim = [run["ssim"] for run in runs]
        spread = f"{median(ssim):.2f}" + (f" ({min(ssim):.2f})" if len(ssim) > 1 else "")
        counts, cpu = row(stored[name])[0], f"{median(run['cpu'] for run in runs):.0f}"
        lines.append([words, counts, spread, cpu, f"{stored[name]['gib']:.1f} GiB"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def audit_table(stored: dict[str, Any]) -> str:
    heads = ["audited", "verdict", "as the truth has it", "CPU s"]
    lines = [heads, ["---"] * len(heads)]
    for name, result in stored.items():
        if name.startswith("audit "):
            run = result["runs"][0]
            words = name.removeprefix("audit ").replace("_", " ").replace("=", " = ")
            right = "yes" if run["right"] else "**no**"
            lines.append([words, run.get("class", "–"), right, f"{run['cpu']:.0f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def page() -> str:
    """The page as it stands, with tables made from the stored rows."""
    stored = json.loads(STORE.read_text(encoding="utf-8"))
    tables = {
        "vectors": table(stored, VECTORS),
        "data": table(stored, DATA),
        "images": image_table(stored),
        "paper": table(stored, PAPER),
        "audits": audit_table(stored),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, made in tables.items():
        before, rest = text.split(f"<!-- {name} -->\n", 1)
        after = rest.split("<!-- end -->", 1)[1]
        text = f"{before}<!-- {name} -->\n{made}<!-- end -->{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
