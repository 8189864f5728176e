"""Records that were kept out: of independent ones nothing comes back, of near copies some does."""

import numpy as np
import pytest

from unveil.auditing.holdout import held_out
from unveil.auditing.release import Release, by_encoder
from unveil.auditing.trial import Arm
from unveil.auditing.trials import Laboratory
from unveil.scheme import Scheme

GAUSS = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)


def lab(x, make=None):
    return Laboratory(Release(x, None, Scheme(2), 140, 0.0, 0, make=make))


def identity(x, public, rng):
    return x


def test_nothing_of_independent_records_comes_back_by_chance():
    assert held_out(lab(GAUSS), Arm("blind", "relations", Scheme(2)), 140) == 0


def test_near_copies_come_back_whoever_was_encoded():
    x = np.repeat(GAUSS[:4], 5, axis=0) + 1e-5 * GAUSS
    mine = lab(x, make=by_encoder(identity, x, None, 0))
    assert held_out(mine, Arm("blind", "copies", Scheme(2)), 20, identity) == 1


def test_equal_records_are_kept_out_together():
    x = np.repeat(GAUSS, 2, axis=0)
    assert held_out(lab(x), Arm("blind", "relations", Scheme(2)), 140) == 0


def test_the_encoder_is_called_without_them():
    seen = []

    def encoder(x, public, rng):
        seen.append(len(x))
        return x

    mine = lab(GAUSS, make=by_encoder(encoder, GAUSS, None, 0))
    assert held_out(mine, Arm("blind", "copies", Scheme(2)), 20, encoder) == 0
    assert seen[-1] == 16


@pytest.mark.parametrize("count", [4, 14])
def test_few_records_cannot_be_spared(count):
    assert held_out(lab(GAUSS[:count]), Arm("blind", "relations", Scheme(2)), 140) is None


def test_encodings_of_others_cannot_be_made_again():
    mine = lab(GAUSS, make=lambda number: GAUSS)
    assert held_out(mine, Arm("blind", "copies", Scheme(2)), 20) is None
