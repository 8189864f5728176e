"""Options and data of an audit: checked once, before anything runs."""

import numpy as np
import pytest
from tests.auditing.test_audit_options import options

from unveil.auditing.inputs import holds_audits, load, trials_folder
from unveil.checks import InputError

NOTHING = {"n_private": None, "n_public": None, "d": None, "sample": None}


RECORDS = np.random.default_rng(0).standard_normal((10, 6)).astype(np.float32)


def test_a_range_of_encodings():
    case = load(RECORDS, None, options(m=80), **NOTHING)
    assert (case.low, case.high) == (10, 80)
    case = load(RECORDS, None, options(encodings=np.ones((30, 6))), **NOTHING)
    assert case.high == case.release.top == 30
    assert case.release.draws == 1
    case = load(RECORDS, None, options(m=20, encodings=np.ones((30, 6))), **NOTHING)
    assert case.high == 20


def test_an_encoder_says_how_many_there_are():
    case = load(RECORDS, None, options(encoder=lambda x, public, rng: x[:7]), **NOTHING)
    assert case.high == 7


def test_tables_of_encodings_keep_their_units(tmp_path):
    np.savetxt(tmp_path / "t.csv", 100 * RECORDS + 5, delimiter=",")
    plain = load(tmp_path / "t.csv", None, options(), **NOTHING)
    own = load(tmp_path / "t.csv", None, options(encodings=np.ones((9, 6))), **NOTHING)
    assert abs(plain.data.values.mean()) < 1e-5
    np.testing.assert_allclose(own.data.values, 100 * RECORDS + 5, rtol=1e-4)


def test_labels():
    case = load(RECORDS, None, options(labels=list("aabbaabbab")), **NOTHING)
    assert case.labels.tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 0, 1]
    with pytest.raises(InputError, match="one for each"):
        load(RECORDS, None, options(labels=[1]), **NOTHING)


def test_a_folder_for_trials(tmp_path):
    assert trials_folder(None) is None
    assert trials_folder(tmp_path / "new") == tmp_path / "new" / "trials"


def test_audits_one_after_the_other_may_share_a_folder(tmp_path):
    assert not holds_audits(tmp_path)
    assert trials_folder(tmp_path) == tmp_path / "trials"
    (tmp_path / "gaussian" / "trials").mkdir(parents=True)
    assert holds_audits(tmp_path)
    assert trials_folder(tmp_path) == tmp_path / "trials"


def test_a_folder_of_something_else_is_not_written_to(tmp_path):
    (tmp_path / "study" / "trials").mkdir(parents=True)
    assert not holds_audits(tmp_path)
    with pytest.raises(InputError, match="not an empty folder"):
        trials_folder(tmp_path)
