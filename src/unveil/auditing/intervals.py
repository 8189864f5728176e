"""How sure is a measured share? Wilson's interval, over records and draws, and the risk above a
control.

Records of one draw may come back together or not at all. So the records of several draws count as
fewer observations than there are: as many as the scatter between the draws allows, by Kish's design
effect (L. Kish, Survey Sampling, 1965, section 5.4). The scatter of few draws is mostly seen too
small, by its median; so what exceeds chance is divided by that of a χ² (E. B. Wilson and M. M.
Hilferty, PNAS 17, 1931). Less scatter than chance is believed in part. With one draw nothing is
known of the scatter, and the interval is over its records alone.

The risk above a control is (r − c)/(1 − c), as in Giomi et al. (PoPETs 2023): what is left of it
when those that a guess gets are taken off. Its interval joins the two Wilson intervals (R. G.
Newcombe, Statistics in Medicine 17, 1998, method 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

Z = 1.96
"""Two-sided 95 percent of the normal distribution."""
BELIEVED = 8.0
"""As many draws speak for scatter by chance alone, where fewer than so many show less: records
compete for encodings, so that a little less is common, and none at all is luck."""
Interval = tuple[float, float]


def wilson(share: float, count: float) -> Interval:
    """Wilson's interval for `share` of `count` observations."""
    centre = (share + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = Z / (1 + Z * Z / count) * sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def over_draws(shares: Sequence[float], records: int) -> Interval:
    """The interval of the mean of `shares`, one of `records` records for each draw."""
    return wilson(float(np.mean(shares)), observations(shares, records))


def observations(shares: Sequence[float], records: int) -> float:
    """As how many independent records those of all draws count: at least one per draw."""
    draws, share = len(shares), float(np.mean(shares))
    chance = share * (1 - share) / records
    if draws < 2 or chance <= 0:
        return float(draws * records)
    effect, free = float(np.var(shares, ddof=1)) / chance, draws - 1
    if effect < 1:
        effect = (BELIEVED + free * effect) / (BELIEVED + free)
    else:
        # The median of χ²/free, by Wilson and Hilferty's cube root.
        effect = 1 + (effect - 1) / (1 - 2 / (9 * free)) ** 3
    return draws * records / min(effect, float(records))


def above_control(
    share: float, interval: Interval, control: float, records: int
) -> tuple[float, float, float]:
    """Risk above the control, and its interval; `records` were held against the control."""
    if control >= 1:
        return 0.0, 0.0, 0.0
    low, high = wilson(control, records)
    gap = share - control
    down = sqrt((share - interval[0]) ** 2 + (high - control) ** 2)
    up = sqrt((interval[1] - share) ** 2 + (control - low) ** 2)
    scale = 1 / (1 - control)
    return gap * scale, max(-1.0, (gap - down) * scale), min(1.0, (gap + up) * scale)
