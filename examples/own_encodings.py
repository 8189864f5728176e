"""Attack encodings that someone else made: an array, what is known of the scheme, and no truth to
compare with."""

import numpy as np

import unveil

# Stands in for numpy.load("released.npy", allow_pickle=False): pairs of private vectors,
# added, signs dropped.
rng = np.random.default_rng(7)
secret = 0.4 * rng.standard_normal((30, 400))
pairs = np.array([rng.choice(30, size=2, replace=False) for _ in range(240)])
released = np.abs(secret[pairs].sum(axis=1) / np.sqrt(2))

# Nothing is known of the size of a private pixel, so pixel_rms is None.
encodings = unveil.Encodings(
    released, unveil.Scheme(k_private=2, weighting="equal"), pixel_rms=None
)
recovery = unveil.recover(encodings, rng=0)

print(recovery.explanation)
for status in ("verified", "ambiguous", "unresolved"):
    print(f"{status}: {int((recovery.status == status).sum())}")
print("signs known" if recovery.signed else "known up to one sign per pixel, the same for all")
