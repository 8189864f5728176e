"""Encodings of an unknown make: what they may be, and records that show as they are."""

import numpy as np
import pytest

import unveil
from unveil.auditing.as_found import VIEWS, copies
from unveil.auditing.risks import ALMOST, EXACT
from unveil.encodings import Encodings
from unveil.scheme import Scheme

RECORDS = np.random.default_rng(0).standard_normal((15, 50)).astype(np.float32)


def found(values, records=RECORDS):
    risks = copies(Encodings(values, Scheme(2), None), records, relative_tolerance=1e-2)[1]
    return int((risks.outcome == EXACT).sum()), int((risks.outcome == ALMOST).sum())


@pytest.mark.parametrize("factor", [1.0, 0.2, -3.0])
def test_a_copy_up_to_a_factor_is_exact(factor):
    assert found(factor * RECORDS[::-1]) == (15, 0)
    # So is one that is brought to mean zero and one size, as many encoders do first.
    assert found((factor * RECORDS + 2) / np.arange(1, 16)[:, None]) == (15, 0)


def test_other_copies_are_approximate():
    assert found(np.clip(RECORDS, -1.2, 1.2)) == (0, 15)
    assert found(np.abs(RECORDS)) == (0, 15)
    assert found(np.round(RECORDS * 2) / 2) == (0, 15)


def test_mixtures_are_no_copies():
    rng = np.random.default_rng(1)
    chosen = np.array([rng.choice(15, 2, replace=False) for _ in range(100)])
    assert found(np.abs(RECORDS[chosen].sum(axis=1))) == (0, 0)
    smooth = np.cumsum(RECORDS, axis=1)
    assert sum(found(np.abs(smooth[chosen].sum(axis=1)), smooth)) <= 2


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_what_chance_makes_of_few_columns_is_no_copy(columns):
    """Some of a hundred encodings is any record of one or two columns, times a number."""
    rng = np.random.default_rng(2)
    records = rng.standard_normal((15, columns)).astype(np.float32)
    assert found(np.abs(rng.standard_normal((105, columns))), records) == (0, 0)
    if columns > 1:
        assert found(records, records) == (15, 0)


def test_views_apply_where_they_make_sense():
    lowered, roots = VIEWS.values()
    assert lowered(RECORDS) is None
    assert lowered(np.abs(RECORDS)) is None
    np.testing.assert_allclose(lowered(np.abs(RECORDS) + 2), np.abs(RECORDS), atol=0.01)
    assert roots(RECORDS) is None
    np.testing.assert_allclose(roots(RECORDS**2), np.abs(RECORDS))


def test_masks_of_a_pool_with_weights_of_their_own_are_tried():
    """TextHide, said to be InstaHide: records with a mean in common show which mask each has."""
    rng = np.random.default_rng(3)
    records = (rng.standard_normal((16, 40)) + 1.5).astype(np.float32)
    masks = rng.choice([-1, 1], (3, 40))

    def encode(x, public, rng):
        share = rng.random((112, 1))
        first, second = rng.integers(0, 16, (2, 112))
        mixed = share * x[first] + (1 - share) * x[second]
        return mixed * masks[rng.integers(3, size=112)]

    found = unveil.audit(records, Scheme(2), encoder=encode, rng=0, seeds=1, effort=2.0)
    assert found.verdict.level == "leaks"
    assert "mixing" in found.attack
