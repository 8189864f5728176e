"""Encodings that are linked to records though none came back: noise that is too small, seen in rows
that are in order, shuffled, or mixed; and noise that has nothing to do with the records."""

import numpy as np
import pytest

import unveil
from unveil.auditing.linking import FEWEST, links
from unveil.auditing.release import Release, by_encoder
from unveil.auditing.trials import Laboratory
from unveil.scheme import Scheme

RECORDS = np.random.default_rng(77).standard_normal((24, 40)).astype(np.float32)


def noisy(x, public, rng):
    return x + 0.5 * rng.standard_normal(x.shape)


def shuffled(x, public, rng):
    return rng.permutation(noisy(x, public, rng))


def three_times(x, public, rng):
    return np.repeat(x, 3, axis=0) + rng.standard_normal((3 * len(x), x.shape[1]))


def fresh(x, public, rng):
    return np.abs(rng.standard_normal((5 * len(x), x.shape[1])))


def laboratory(encode, given):
    make = by_encoder(encode, RECORDS, None, 5)
    values = make(0)
    make = (lambda number: values) if given else make
    return Laboratory(Release(RECORDS, None, Scheme(2), len(values), 0.0, 5, None, make))


def of(encode, *, given=False):
    lab = laboratory(encode, given)
    return links(lab, lab.release.top, None if given else encode)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("encode", [noisy, three_times])
def test_rows_in_order_are_linked_under_noise(encode, given):
    found = of(encode, given=given)
    assert found.sure
    assert found.rate > 0.9
    assert found.chance == pytest.approx(1 / 24)
    assert found.low > found.chance
    assert not found.members


def test_shuffled_rows_are_linked_by_running_the_encoder_on_half_of_the_records():
    found = of(shuffled)
    assert (found.sure, found.members, found.chance) == (True, True, 0.5)
    assert found.rate > 0.9
    # Without the encoder nobody can say of which record a row is.
    assert not of(shuffled, given=True).sure


@pytest.mark.parametrize("given", [False, True])
def test_fresh_noise_is_at_chance(given):
    found = of(fresh, given=given)
    assert not found.sure
    assert found.low <= found.chance <= found.high


def test_too_few_encodings_or_rows_of_unknown_records_say_nothing():
    values = np.random.default_rng(2).standard_normal((30, 40)).astype(np.float32)
    lab = Laboratory(Release(RECORDS, None, Scheme(2), 30, 0.0, 5, None, lambda number: values, 1))
    assert links(lab, FEWEST - 1) is None
    assert links(lab, 30) is None  # 30 rows of 24 records


def test_the_audit_says_so_where_nothing_came_back():
    records = RECORDS[:16, :20]
    values = records + np.random.default_rng(3).standard_normal(records.shape)
    audit = unveil.audit(records, encodings=values, effort=0, seeds=1, rng=0)
    assert audit.verdict.level == "partly"
    assert (
        "of the encodings can be linked to their record by someone who holds"
        in audit.verdict.headline
    )
    assert audit.verdict.sentences[0].startswith("Nothing recovered")
    link = next(meaning for meaning in audit.meanings if meaning.kind == "linkability")
    assert link.control < 0.1 < 0.5 < link.low


def test_a_few_records_are_judged_over_several_draws():
    """Noise of five times their size: one in five is linked, which two dozen of them do not show."""

    def loud(x, public, rng):
        return x + 5 * rng.standard_normal(x.shape)

    found = of(loud)
    assert found.sure
    assert 0.1 < found.rate < 0.4
    # Eight draws of 24 encodings: one draw's interval is 0.3 wide.
    assert found.high - found.low < 0.15
