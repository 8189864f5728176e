"""Draws made on a cluster are those that would have been made here, and are kept like them."""

import numpy as np
import pytest

from unveil import Scheme
from unveil.auditing.ahead import make_ahead
from unveil.auditing.release import Release
from unveil.auditing.trial import Arm
from unveil.auditing.trials import Laboratory
from unveil.parallel import using

ARMS = (Arm("blind", "mixing", Scheme(2, signs="kept")),)


@pytest.fixture(scope="module")
def release():
    records = np.random.default_rng(0).normal(size=(10, 20)).astype(np.float32)
    return Release(records, None, ARMS[0].scheme, 40, 0.0, 0)


def test_trials_of_a_cluster_are_those_made_here(release, cluster, tmp_path):
    here, there = Laboratory(release), Laboratory(release, folder=tmp_path)
    expected = [here.best(40, draw, ARMS, show=draw == 0) for draw in range(2)]
    with using(scheduler=cluster.scheduler_address):
        make_ahead(there, 40, ARMS, 2, show=True)
    assert sorted(there.made) == sorted(here.made)
    assert len(list(tmp_path.glob("*.npz"))) == len(here.made)
    for draw, trial in enumerate(expected):
        found = there.best(40, draw, ARMS, show=draw == 0)
        assert found.exact == trial.exact == 1
        assert found.error.tobytes() == trial.error.tobytes()
        assert found.explanation == trial.explanation


def test_without_a_cluster_or_with_one_draw_nothing_is_made_ahead(release):
    lab = Laboratory(release)
    make_ahead(lab, 40, ARMS, 3, show=False)
    with using(scheduler="tcp://127.0.0.1:9"):
        make_ahead(lab, 40, ARMS, 1, show=False)
    assert not lab.made
