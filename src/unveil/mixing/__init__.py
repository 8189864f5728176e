"""Mixtures with signs kept, behind masks of a pool, or with own weights and signs hidden.

One model, y = s∘(ΛX) with Λ sparse and not negative, and one alternation for all of them:

    model        the mixture, least squares, who is explained
    codes        sparse codes; codes, least squares and signs in turn
    corners      at most d + 1 records: the skewest columns of a span
    dictionary   more records than values
    masks        rows that share a sign mask, and the masks
    hidden       own weights, signs hidden
    attack       the attack: units, public part, certificate
"""

from unveil.mixing.attack import recover_mixture

__all__ = ["recover_mixture"]
