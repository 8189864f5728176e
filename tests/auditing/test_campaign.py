"""The trials of an audit: within the effort, and no attack is forgotten."""

import numpy as np

from unveil.auditing.campaign import campaign
from unveil.auditing.inputs import Case
from unveil.auditing.release import Release
from unveil.auditing.trials import Laboratory
from unveil.data import Dataset
from unveil.scheme import Scheme

RECORDS = np.random.default_rng(0).standard_normal((12, 40)).astype(np.float32)


class Options:
    effort, seeds, progress, encoder = 0.0, 3, None, None


def made(effort):
    options = Options()
    options.effort = effort
    data = Dataset(RECORDS, tuple(map(str, range(12))), "array", "here")
    release = Release(RECORDS, None, Scheme(2), 84, 0.0, 1)
    return campaign(Laboratory(release), Case(data, release, 12, 84), options, hard=False)


def test_without_effort_one_draw_of_all_encodings():
    found = made(0.0)
    assert list(found.points) == [84]
    assert len(found.points[84]) == 1
    assert found.best.exact == 12
    assert found.threats[found.place].key == "blind"
    assert len(found.trials) == len({id(trial) for trial in found.trials})


def test_with_effort_more_draws_and_fewer_encodings():
    found = made(1.0)
    assert len(found.points[84]) == 3
    assert 12 in found.points
    few, many = found.threats[0].low, made(0.0).threats[0].low
    assert few > many
