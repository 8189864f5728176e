"""An audit from outside: one answer, value by value, whatever the size, the seed and the encoder."""

import json

import jsonschema
import numpy as np
import pytest

import unveil
from unveil.report.schema import audit_schema

QUICK = {"seeds": 1, "rng": 0}
RNG = np.random.default_rng(0)
GAUSS = RNG.standard_normal((20, 30)).astype(np.float32)


def patients(n, seed=0):
    """Four columns of measurements, five of zeros and ones."""
    rng = np.random.default_rng(seed)
    x = np.column_stack(
        [
            rng.normal(60, 15, n).round(2),
            rng.normal(137, 4, n).round(2),
            rng.normal(4.2, 0.5, n).round(3),
            rng.gamma(2, 0.6, n).round(3),
            rng.random((n, 5)) < 0.4,
        ]
    )
    names = ["age", "sodium", "potassium", "creatinine", "sex", "smoker", "anaemia", "x", "y"]
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(x, columns=names)


def test_a_table_is_told_by_its_columns():
    found = unveil.audit(patients(40), m=(280, 280), **QUICK)
    assert found.verdict.level == "leaks"
    assert found.verdict.headline.startswith("Do not release: ")
    assert "columns" in found.verdict.headline
    assert "All 40 records were attacked" in found.verdict.attacked
    columns = {column.name: column for column in found.columns}
    for name in ("age", "sodium", "potassium", "creatinine"):
        assert columns[name].exact == 40
        assert columns[name].lift > 0.95
        assert columns[name].leaks


def test_every_number_agrees_with_every_other():
    found = unveil.audit(GAUSS, m=(20, 130), seeds=2, rng=0)
    outcomes = [record.outcome for record in found.records]
    main = found.threats[0]
    assert outcomes.count("exact") == main.exact
    assert outcomes.count("approximate") == main.approximate
    values = sum(record.values for record in found.records)
    assert values == sum(column.exact for column in found.columns)
    assert main.values == pytest.approx(values / GAUSS.size)
    for column in found.columns:
        assert column.low <= column.exact / column.records <= column.high
    for point in found.curve:
        assert point.low <= point.exact + point.approximate <= point.high
    assert found.curve[-1].m == found.m == 130
    jsonschema.validate(json.loads(found.to_json()), audit_schema())


def test_the_same_seed_gives_the_same_audit():
    first, second = (unveil.audit(GAUSS, m=(100, 100), **QUICK).facts() for _ in range(2))
    for facts in (first, second):
        facts.pop("run"), facts.pop("provenance")
        for threat in facts["threats"]:
            for attempt in threat["tried"]:
                attempt.pop("seconds")
    assert first == second


def test_a_sample_speaks_for_a_whole_that_time_did_not_suffice_for(monkeypatch):
    def slow(encodings, public, options, how):
        if encodings.m > 900:
            over.append(True)
            how["progress"]("searching", 0, 1)
        return real(encodings, public, options, how)

    from unveil import attacks
    from unveil.auditing.attacker import Clock

    real, over = attacks.in_turn, []
    monkeypatch.setattr(attacks, "in_turn", slow)
    monkeypatch.setattr(Clock, "left", property(lambda clock: 0.0 if over else 600.0))
    x = np.random.default_rng(1).standard_normal((160, 20)).astype(np.float32)
    told = []
    found = unveil.audit(x, progress=lambda stage, *_: told.append(stage), **QUICK)
    assert found.verdict.level == "leaks"
    assert "of a sample" in found.verdict.headline
    assert "stopped by the clock" in found.verdict.attacked
    assert found.threats[0].sampled
    assert any("so far: all 20 values of all 100 records of a sample" in stage for stage in told)


def test_time_that_is_over_before_anything_was_found_decides_nothing():
    found = unveil.audit(GAUSS, m=(140, 140), time=0.001, **QUICK)
    assert found.verdict.level == "partly"
    assert "time ran out" in found.verdict.headline
    assert found.threats[0].stopped


def test_large_tables_are_sampled_and_it_is_said():
    from unveil.auditing.release import load

    x = np.random.default_rng(1).standard_normal((300, 5))
    case = load(x, None, None, m=2100, most=100)
    assert (len(case.release.private), case.release.m) == (100, 700)
    assert (len(case.places), len(case.data.names)) == (100, 300)


def test_images_are_told_by_images():
    found = unveil.audit("fashion-mnist", sample=14, m=(100, 100), **QUICK)
    assert found.columns == ()
    assert "14 images come back" in found.verdict.headline
    assert found.pictures.originals.shape == (14, 28, 28)
    # Of pixels that the equations leave open nearly all are guessed right.
    close = np.abs(found.pictures.originals - found.pictures.recoveries) < 0.02
    assert (~close).sum() < 0.02 * sum(record.open for record in found.records)


def test_nothing_recovered_is_no_proof():
    found = unveil.audit(GAUSS, m=(12, 12), noise=4.0, **QUICK)
    assert found.verdict.level == "nothing"
    assert "no proof of safety" in found.verdict.headline
    assert not any(column.leaks for column in found.columns)


def test_what_takes_knowing_more_is_partly():
    found = unveil.audit(GAUSS[:, :12], m=(140, 140), noise=0.05, **QUICK)
    assert found.verdict.level == "partly"
    assert "once" in found.verdict.headline


def test_equal_records_count_once():
    found = unveil.audit(np.vstack([GAUSS[:10], GAUSS[:10]]), m=(120, 120), **QUICK)
    assert len(found.records) == 10
    assert any("20 records, 10 of them different" in said for said in found.verdict.sentences)


def _mix(x, rng, k=2):
    chosen = np.array([rng.choice(len(x), k, replace=False) for _ in range(7 * len(x))])
    return x[chosen].mean(axis=1)


def _coins(x, rng):
    return rng.choice([-1, 1], x.shape[1])


ENCODERS = {
    "identity": (lambda x, p, rng: x, "leaks"),
    "scaled": (lambda x, p, rng: 0.3 * x, "leaks"),
    "records standardised": (lambda x, p, rng: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), "leaks"),
    "magnitudes": (lambda x, p, rng: np.abs(_mix(x, rng)), "leaks"),
    "one mask for all": (lambda x, p, rng: _mix(x, rng) * _coins(x, rng), "leaks"),
    "MixUp": (lambda x, p, rng: _mix(x, rng), "leaks"),
    "squares": (lambda x, p, rng: _mix(x, rng) ** 2, "leaks"),
    "a secret vector added": (lambda x, p, rng: np.abs(_mix(x, rng) + np.linspace(-3, 3, 30)), "partly"),
    "columns shuffled": (lambda x, p, rng: x[:, np.random.default_rng(8).permutation(30)], "partly"),
    "little noise": (lambda x, p, rng: x + 0.1 * rng.standard_normal(x.shape), "partly"),
    "noise of their size": (lambda x, p, rng: x + rng.standard_normal(x.shape), "partly"),
    "fresh noise": (lambda x, p, rng: np.abs(rng.standard_normal((140, 30))), "nothing"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENCODERS)
def test_the_users_encoder_is_what_is_attacked(name):
    encoder, level = ENCODERS[name]
    found = unveil.audit(GAUSS, encoder=encoder, m=(140, 140), time="10m", **QUICK)
    assert found.verdict.level == level, found.verdict
    assert found.assumed["encodings made by"] == "the encoder"


def test_encodings_somebody_else_made():
    sim = unveil.simulate(unveil.Scheme(2), private=GAUSS, m=140, rng=3)
    found = unveil.audit(GAUSS, encodings=sim.encodings.values, **QUICK)
    assert found.verdict.level == "leaks"
    assert found.records[0].encodings > 0


@pytest.mark.parametrize("shape", [(5, 30), (40, 8), (60, 3), (20, 60), (30, 12)])
def test_encodings_that_are_noise_claim_nothing(shape):
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal((max(shape[0] // 3, 6), shape[1])).astype(np.float32)
    for seed in range(2):
        values = np.abs(np.random.default_rng(seed).standard_normal(shape))
        found = unveil.audit(x, encodings=values, seeds=1, rng=seed)
        assert found.verdict.level == "nothing", found.verdict


def test_what_if_shows_every_attacker_and_that_small_noise_is_no_cure():
    found = unveil.audit(GAUSS[:, :10], m=(140, 140), what_if="noise", **QUICK)
    at = {(point.value, point.attacker): point for point in found.what_if}
    assert at[0.0, "blind"].values == 1
    assert at[0.01, "told"].values > 0.8
    assert at[0.01, "insider"].values > 0.8
    assert at[1.0, "insider"].values < 0.1
    assert [point.attacker for point in found.what_if[:3]] == ["insider", "told", "blind"]
    assert at[0.01, "told"].epsilon > at[0.1, "told"].epsilon > 0


def test_a_sensitive_column_is_inferred():
    found = unveil.audit(patients(30), m=(210, 210), sensitive="creatinine", **QUICK)
    meaning = next(meaning for meaning in found.meanings if meaning.kind == "inference")
    assert meaning.rate == 1
    assert "creatinine" in meaning.words


def test_a_wrong_verified_vector_is_never_silent(monkeypatch):
    from dataclasses import replace

    from unveil import attacks

    real = attacks.in_turn

    def lying(*args, **options):
        recovery = real(*args, **options)
        return replace(recovery, vectors=recovery.vectors + np.float32(2))

    monkeypatch.setattr(attacks, "in_turn", lying)
    found = unveil.audit(GAUSS, m=(140, 140), **QUICK)
    assert any("called verified equal no record" in said for said in found.verdict.sentences)


BAD = {
    "nothing mixed": ({"scheme": unveil.Scheme(1)}, "nothing private is mixed"),
    "no law": ({"scheme": unveil.Scheme(2, weighting="unknown")}, "without a law of weights"),
    "no attack": (
        {"scheme": unveil.Scheme(2, 1, weighting="released"), "public": GAUSS},
        "no attack takes on",
    ),
    "no pool": ({"scheme": unveil.Scheme(2, 2)}, "no public vectors"),
    "pool for nothing": ({"public": GAUSS}, "k_public=0"),
    "both": ({"encoder": _mix, "encodings": GAUSS}, "what makes them, or what was made"),
    "seeds": ({"seeds": 0}, "seeds=0"),
    "m": ({"m": 1}, "m=1"),
    "time": ({"time": "soon"}, "90s, 10m or 2h"),
    "axis": ({"what_if": "weights"}, "choose one of noise, k, m, all"),
    "column": ({"sensitive": "age"}, "no such column"),
    "labels": ({"labels": [1, 2]}, "2 labels of 20 records"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_sentence(name):
    options, words = BAD[name]
    with pytest.raises(unveil.InputError, match=words):
        unveil.audit(GAUSS, **{"rng": 0, **options})


def test_a_function_stays_a_function_after_its_modules_were_imported():
    import unveil.auditing.audit

    assert callable(unveil.audit)
    assert callable(unveil.plan)


def test_a_slip_of_the_users_encoder_keeps_the_verdict_from_being_nothing():
    def encode(private, public, rng):
        chance = np.random.default_rng(5)  # whatever the seed
        return np.abs(
            _mix(private, chance) + 3 * chance.standard_normal((7 * len(private), private.shape[1]))
        )

    found = unveil.audit(GAUSS, encoder=encode, m=(140, 140), time="20s", **QUICK)
    assert found.verdict.level == "partly"
    assert any("seed is fixed" in finding.what for finding in found.findings)


def test_a_truth_in_other_units_does_not_hide_that_all_came_back():
    rng = np.random.default_rng(2)
    raw = (rng.standard_normal((30, 8)) * 10.0 ** np.arange(-3, 5) + 70).astype(np.float32)
    plain = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    sim = unveil.simulate(unveil.Scheme(2), private=plain, m=210, rng=0)
    found = unveil.audit(raw, encodings=sim.encodings.values, **QUICK)
    assert found.verdict.level == "partly"
    assert "all 30 records come back approximately" in found.verdict.headline
    assert "the units of every column" in found.verdict.sentences[0]
    assert str(found).startswith(found.verdict.headline)


def test_a_column_that_one_value_outweighs_is_named():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((30, 6)).astype(np.float32)
    x[4, 2] = 1e7
    found = unveil.audit(x, **QUICK)
    assert any("far from all others" in sentence for sentence in found.verdict.sentences)
    assert not any(
        "far from all others" in one for one in unveil.audit(GAUSS, **QUICK).verdict.sentences
    )
