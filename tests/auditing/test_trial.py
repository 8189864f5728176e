"""Trials are kept whole."""

import numpy as np

from unveil.auditing.release import Release
from unveil.auditing.trial import Arm, packed, unpacked
from unveil.auditing.trials import Laboratory
from unveil.scheme import Scheme


def test_what_is_kept_is_what_was():
    X = np.random.default_rng(0).standard_normal((10, 30)).astype(np.float32)
    trial = Laboratory(Release(X, None, Scheme(2), 70, 0.0, 3)).trial(
        70, 0, Arm("blind", "relations", Scheme(2))
    )
    again = unpacked(packed(trial))
    assert again is not None
    assert vars(again).keys() == vars(trial).keys()
    np.testing.assert_array_equal(again.outcome, trial.outcome)
    assert again.status == trial.status


def test_what_other_code_kept_is_no_trial():
    assert unpacked({"about": "{}"}) is None
