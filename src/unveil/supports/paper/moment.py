"""The moment matrix of LearnPublic (`alg:public_attack`, step 1; `lem:population`).

    M̃ = (1/d) Σ_j (y_j²/σ² − 1)·([p_j]_S [p_j]_Sᵀ − I),     E[M̃] = 2·[w]_S [w]_Sᵀ / σ²,

σ² = ‖w‖² for standard vectors. The paper prints ½ in the lemma; its own derivation ends with 2. It
also takes σ = 1; we divide by the empirical mean of y², which is right for every weighting and
takes noise out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def moment_matrix(
    magnitudes: NDArray[np.float32], public: NDArray[np.float32]
) -> NDArray[np.float64]:
    """M̃ (n_public, n_public) of one encoding `magnitudes` (d,). Cost d·n_public²."""
    z = moment_weights(magnitudes)
    moment = (public * z.astype(np.float32)) @ public.T / len(z)
    moment = moment.astype(np.float64)
    moment[np.diag_indices_from(moment)] -= z.mean()
    return moment


def moment_weights(magnitudes: NDArray[np.float32]) -> NDArray[np.float64]:
    """y²/σ² − 1 along the last axis; all zeros for an encoding of zeros, which says nothing."""
    square = magnitudes.astype(np.float64) ** 2
    mean = square.mean(axis=-1, keepdims=True)
    return np.asarray(np.divide(square, mean, out=np.ones_like(square), where=mean > 0) - 1)
