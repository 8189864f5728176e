"""TextHide on features of real sentences: which masks, which vectors come back, in what time.

`python -m benchmarks.texthide [1/part] [pool …]`: 1,000 private sentences, 20,000 encodings of 768
features, four mixed in each. *inter*: two of them are of 2,000 public sentences, which are at hand;
*intra*: all are private. Pools of 16 and 256 masks when none is named. `1/2`: half as many of
everything, features a random half.

Sentences are those of the help topics that come with Python (`pydoc_data.topics`). Features are
those that a package ships: the vectors of tokens in `wordllama` (PyPI, MIT licence, 256 values
each), pooled over a sentence by mean, maximum and minimum, 768 values (concatenated power means:
Rücklé, Eger, Peyrard, Gurevych 2018). Where it is not installed: hashed words and pairs of words,
tf–idf, a random projection and tanh with a random bias, as a pooler has.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np
from benchmarks.table import Row, show

import unveil

SEED = 61000
"""Fresh."""
N, PUBLIC, M, D = 1000, 2000, 20_000, 768
"""Private and public sentences, encodings, features."""
SOME = 5
"""Seed of which features are taken where not all are."""
POOLS = (16, 256)
"""Masks: the defaults of the released scripts."""
WORDS = 5
"""A line with fewer words is a heading or code."""
HASHES = 1 << 15
"""Places for words and pairs of words; few share one."""
TOLERANCE = 0.01
"""Of the root mean square of all features: the largest error of a vector that came back."""


def sentences() -> list[str]:
    """Different ones, in the order of the topics."""
    from pydoc_data.topics import topics

    out: list[str] = []
    for name in sorted(topics):
        for paragraph in re.split(r"\n\s*\n", topics[name]):
            for one in re.split(r"(?<=[.:;!?])\s+", " ".join(paragraph.split())):
                if len(re.findall(r"[A-Za-z]{2,}", one)) >= WORDS:
                    out.append(one)
    return list(dict.fromkeys(out))


def features() -> tuple[str, np.ndarray]:
    """How they were made, and (sentences, 768)."""
    at = find_spec("wordllama")
    if at is None or at.origin is None or find_spec("tokenizers") is None:
        return "tf–idf, projected", _hashed(sentences())
    return "pooled vectors of tokens", _pooled(Path(at.origin).parent)


def _pooled(package: Path) -> np.ndarray:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(next((package / "tokenizers").glob("*.json"))))
    tokenizer.no_padding()
    (vectors,) = load_file(str(next((package / "weights").glob("*_256.safetensors")))).values()
    out = []
    for one in sentences():
        tokens = vectors[tokenizer.encode(one, add_special_tokens=False).ids].astype(np.float32)
        out.append(np.concatenate([tokens.mean(0), tokens.max(0), tokens.min(0)]))
    return np.array(out)


def _hashed(texts: list[str]) -> np.ndarray:
    counts = np.zeros((len(texts), HASHES), np.float32)
    for row, text in zip(counts, texts, strict=True):
        words = re.findall(r"[a-z]+", text.lower())
        for word in [*words, *map(" ".join, pairwise(words))]:
            row[crc32(word.encode()) % HASHES] += 1
    used = (counts > 0).sum(axis=0)
    counts *= np.log((1 + len(texts)) / (1 + used))
    counts /= np.linalg.norm(counts, axis=1, keepdims=True)
    rng = np.random.default_rng(SEED)
    projection = rng.standard_normal((HASHES, D)).astype(np.float32)
    return np.tanh(counts @ projection + rng.standard_normal(D)).astype(np.float32)


def texthide(pools: tuple[int, ...] = POOLS, part: int = 1) -> Iterator[Row]:
    """Both ways of mixing, for every pool; one part of so many of all sizes."""
    made, vectors = features()
    vectors = vectors[np.random.default_rng(SEED).permutation(len(vectors))]
    if part > 1:
        vectors = vectors[:, np.random.default_rng(SOME).permutation(D)[: D // part]]
    for pool in pools:
        for own, others in ((2, 2), (4, 0)):
            yield _row(made, vectors, pool, own, others, part)


def _row(made: str, vectors: np.ndarray, pool: int, own: int, others: int, part: int = 1) -> Row:
    n, m = N // part, M // part
    scheme = unveil.Scheme(own, others, "half-normal", signs="masked", masks=pool)
    public = vectors[n : n + PUBLIC // part] if others else None
    sim = unveil.simulate(scheme, private=vectors[:n], public=public, m=m, rng=SEED)
    start = time.perf_counter()
    recovery = unveil.recover(sim.encodings, public, attack="mixing", rng=0)
    seconds = time.perf_counter() - start
    size = float(np.sqrt(np.mean(sim.private**2)))
    scores = unveil.score(recovery, sim.private, tolerance=TOLERANCE * size)
    back = len(set(scores.matches[scores.matches >= 0].tolist()))
    stages = ", ".join(f"{name} {spent:.0f} s" for name, spent in recovery.seconds.items())
    what = f"TextHide, {made}, n={n}, {pool} masks, {'inter' if others else 'intra'}"
    measured = f"{recovery.evidence.get('masks', 0)} masks, {back} of {n} vectors, "
    measured += f"{recovery.explained} of {m} encodings explained, {scores.wrong} wrong, "
    measured += f"{seconds:.0f} s ({stages})"
    return what, "0 wrong", measured, not scores.wrong


def main() -> None:
    named = sys.argv[1:]
    part = int(named.pop(0).removeprefix("1/")) if named and named[0].startswith("1/") else 1
    for row in texthide(tuple(map(int, named)) or POOLS, part):
        show("TextHide", [row])


if __name__ == "__main__":
    main()
