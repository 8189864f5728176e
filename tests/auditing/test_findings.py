"""What an audit finds besides records: a certificate that failed comes first."""

from types import SimpleNamespace

import numpy as np
import pytest

from unveil.auditing.findings import findings
from unveil.auditing.release import Release
from unveil.auditing.trials import Laboratory
from unveil.scheme import Scheme


def found(wrong, encoder=None):
    records = np.random.default_rng(0).normal(size=(10, 30)).astype(np.float32)
    release = Release(records, None, Scheme(2), 40, 0.0, 0)
    case = SimpleNamespace(
        data=SimpleNamespace(names=[str(i) for i in range(10)]), release=release, high=40
    )
    options = SimpleNamespace(encoder=encoder, progress=None)
    return findings(Laboratory(release), case, options, wrong)


def test_a_certificate_that_failed_is_said_first_and_is_grave():
    first, *others = found(2)
    assert first.severity == "high"
    assert "2 vectors were called verified" in first.what
    assert tuple(others) == found(0)


def test_an_encoder_that_cannot_be_looked_into_is_said():
    def fails(private, public, rng):
        raise RuntimeError("only my own data")

    words = [finding.what for finding in found(0, fails)]
    assert any("cannot be looked into" in text and "only my own data" in text for text in words)


@pytest.mark.parametrize("wrong", [0, 1])
def test_without_an_encoder_weights_are_those_of_the_scheme(wrong):
    assert any("Weights" in finding.what for finding in found(wrong))
