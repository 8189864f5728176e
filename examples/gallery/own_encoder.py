"""An encoder of your own, audited: what it gives away in its code, and what an attacker gets from
its encodings."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unveil


def encode(private, public, rng):
    """Pairs of private vectors, with two mistakes: one mask for all encodings, and a fixed seed."""
    rng = rng or np.random.default_rng(0)
    pairs = np.array([rng.choice(len(private), 2, replace=False) for _ in private])
    mask = rng.choice([-1.0, 1.0], private.shape[1])
    return mask * (private[pairs].sum(axis=1) / np.sqrt(2))


folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
private = np.random.default_rng(0).standard_normal((24, 120)).astype(np.float32)
findings = unveil.lint_encoder(encode, n_private=24)
made = np.concatenate([encode(private, None, np.random.default_rng(s)) for s in range(5)])
shares = []
for m in (48, 72, 84, 96, 120):
    part = unveil.Encodings(made[:m], unveil.Scheme(k_private=2))
    shares.append((m, unveil.score(unveil.recover(part, rng=0), private).exact / 24))

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(*np.transpose(shares), "o-", color="#D55E00")
left.set(xlabel="encodings released", ylabel="records recovered exactly", ylim=(-0.02, 1.02))
left.set_title("what an attacker gets")
right.axis("off")
right.set_title("what the encoder gives away")
words = "\n\n".join(f"{f.severity}: {f.what}" for f in findings)
right.text(0, 0.95, words, va="top", wrap=True, fontsize=10)
figure.savefig(folder / "own_encoder.png", dpi=110)
