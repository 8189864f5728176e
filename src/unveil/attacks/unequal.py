"""The full attack on weights that are unequal, unknown and new in every encoding (InstaHide as
released, without public part).

    1  Z ← squared correlations of all pairs of encodings (`gram.correlation`)
    2  P ← MixedMemberships(Z): members and shares, corners of a simplex
       (`factor.mixed_memberships`)
    3  W, x ← Feedback on a few hundred pixels: members and weights, until encodings are explained
       exactly (`solve.weights.unequal`)
       P ← Extend(Z, W): vectors not counted yet, then 3 again
    4  W, x ← every weight, every pixel, twice (`solve.weights.unequal_pixels`); where nothing is
       exact, as well as noise allows (`solve.weights.unequal_noisy`), and that is all
    5  status ← Certificate, vector by vector (`certify.unequal_certificate`)

Dense in m. The number of vectors is found, not given.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unveil.attacks.finish import placed
from unveil.attacks.finish_noisy import approximate
from unveil.certificate import certify
from unveil.encodings import Encodings
from unveil.factor.mixed_memberships import Memberships, extend, mixed_memberships
from unveil.gram.correlation import squared_correlations
from unveil.parallel import Stopwatch, must_fit
from unveil.records import Progress, Recovery
from unveil.seeds import Rng, child, root
from unveil.solve.weights.unequal import WeightedAssignment, feedback_unequal
from unveil.solve.weights.unequal_noisy import solve_noisy_weights
from unveil.solve.weights.unequal_pixels import solve_weights_and_pixels

PIXELS = 500
"""Pixels on which members and weights are found: more than for known weights, since a member of
small weight shows itself over many pixels only."""
EXTENSIONS = 3
"""Times that vectors not counted yet are looked for among the encodings left over."""
BYTES_PER_PAIR, BYTES_PER_VALUE = 32, 40
"""Memory for each pair of encodings, and for each of their values: copies in double precision."""


def full_unequal(
    encodings: Encodings, name: str, *, rng: Rng, limit: int, progress: Progress | None = None
) -> Recovery:
    """Every private vector and every weight the encodings determine, each vector with its status
    and the reason for it. `limit`: bytes of memory."""
    k, m, d = encodings.scheme.k_private, encodings.m, encodings.d
    what = f"attack='full' on {m:,} encodings of {d:,} pixels"
    must_fit(BYTES_PER_PAIR * m * m + BYTES_PER_VALUE * m * d, what, limit, "attack fewer of them")
    # 1–2. Who shares how much with whom, and a first guess at members and shares.
    seed = root(rng)
    clock = Stopwatch()
    Y = encodings.magnitudes()
    with clock("similarity"):
        Z = squared_correlations(Y)
    with clock("factor"):
        start = mixed_memberships(Z, k)
    if start is None:
        return Recovery.empty(
            encodings, name, f"{m} encodings: too few, or nothing shared", clock.seconds
        )
    # 3–4. Members and weights on some pixels, then everything at all pixels.
    with clock("feedback"):
        some = np.ascontiguousarray(Y[:, :PIXELS])
        found = _explain(some, Z, start, child(seed, "feedback"), progress)
    with clock("pixels"):
        solution = solve_weights_and_pixels(Y, found, child(seed, "pixels"), progress=progress)
    if solution is None:
        # Nothing is exact: noise, perhaps. Then nothing is proved either.
        with clock("noisy pixels"):
            noisy = solve_noisy_weights(Y, start, child(seed, "noisy"), progress=progress)
        if noisy is not None:
            facts = {"estimated_n_private": start.n, "feedback_rounds": found.rounds}
            return approximate(encodings, name, noisy, 1.0, False, clock, facts)
        nothing = f"no consistent explanation of the {m} encodings: more pixels or encodings are "
        nothing += "needed, or another k_private"
        return Recovery.empty(encodings, name, nothing, clock.seconds)
    # 5. The certificate.
    n, explained = len(solution.pixels.values), len(solution.rows)
    weights = placed(solution.rows, solution.members, solution.weights, (m, n))
    values = solution.pixels.values.astype(np.float32)
    with clock("certificate"):
        judged = certify(encodings, values, weights != 0, weights=weights)
    verified = int(judged.verified.sum())
    facts = {
        "estimated_n_private": start.n,
        "encodings_explained": explained,
        "feedback_rounds": found.rounds,
        "equations": explained * d,
        "unknowns": n * d + explained * (k - 1),
    }
    text = f"{verified} of {n} private vectors verified; {explained} of {m} encodings explained "
    text += "exactly, weights found with them"
    return replace(
        judged,
        attack=name,
        explanation=text,
        seconds=clock.seconds,
        evidence=facts,
        explained=explained,
        exact=True,
    )


def _explain(
    y: NDArray[np.float32],
    Z: NDArray[np.float64],
    start: Memberships | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> WeightedAssignment:
    """Feedback; where rows are left, new columns for them and feedback again. The assignment with
    most exact rows."""
    best = None
    for _ in range(1 + EXTENSIONS):
        assert start is not None
        found = feedback_unequal(y, start, rng, progress=progress)
        if best is None or found.exact.sum() > best.exact.sum():
            best = found
        if found.exact.all() or 2 * found.exact.sum() < len(y):
            break
        # Rows that are explained tell the shares of all vectors known so far.
        power = found.weights**2
        shares = power / np.maximum(power.sum(axis=1, keepdims=True), 1e-30)
        start = extend(Z, Memberships(found.members, shares, start.n), found.exact)
        if start is None:
            break
    assert best is not None
    return best
