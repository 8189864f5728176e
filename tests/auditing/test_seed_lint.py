"""Seeds seen from outside: none, one in the code, one that can be guessed, the global one."""

import numpy as np
import pytest

from unveil.auditing.encoder_lint import lint_encoder
from unveil.auditing.seed_lint import DRAWS_NOTHING, lint_seeds


def coded(seed):
    """An encoder that falls back on a seed of its own."""
    return lambda x, public, rng: (
        x * np.random.default_rng(seed if rng is None else rng).choice([-1, 1], x.shape)
    )


def said(encoder):
    return lint_seeds(encoder, None, None, None, 0.3, None)


def test_an_encoder_that_draws_nothing_has_no_seed_to_guess():
    found = lint_encoder(lambda private, public, rng: private, 30, seconds=0.2)
    said = [f.what for f in found if "seed" in f.what]
    assert len(said) == 1
    assert "nothing is drawn" in said[0]


def test_a_seed_that_is_never_looked_at_is_one_finding():
    assert said(lambda x, public, rng: coded(5)(x, public, None)) == [DRAWS_NOTHING]


@pytest.mark.parametrize(("seed", "words"), [(982451653, "seed is fixed"), (7, "those of seed 7")])
def test_a_seed_in_the_code_is_found(seed, words):
    assert any(words in finding.what for finding in said(coded(seed)))


def test_a_fresh_seed_is_fine():
    assert {finding.severity for finding in said(coded(None))} == {"fine"}
