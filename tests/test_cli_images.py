"""The command line on images: a folder of the challenge in, decryption.npy and its scores out; runs
with shapes and labels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy import sparse

from unveil import Scheme, cli, simulate
from unveil.checks import InputError
from unveil.data.bundled import fashion_mnist
from unveil.encode.units import Units
from unveil.encodings import Simulation
from unveil.engine import runs
from unveil.records import Recovery

SHAPE = (16, 16, 3)


def call(*args: object) -> Result:
    return CliRunner().invoke(cli.main, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def made() -> Simulation:
    # None is clipped: values in few levels are not verified.
    private = (0.2 * np.random.default_rng(0).standard_normal((20, 768))).astype(np.float32)
    scheme = Scheme(2, weighting="half-normal", signs="random")
    return simulate(
        scheme, private=private, m=150, image_shape=SHAPE, labels=np.arange(20) % 4, rng=1
    )


@pytest.fixture(scope="module")
def attacked(made: Simulation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half-normal weights without a public part, so that an attack recovers the images exactly, up
    to common signs."""
    folder = tmp_path_factory.mktemp("challenge") / "challenge"
    write(folder, made)
    result = call(
        "attack", folder, "--k-public", 0, "--weighting", "half-normal", "--pairing", "independent"
    )
    assert result.exit_code == 0, result.output
    return folder


def write(folder: Path, made: Simulation) -> None:
    folder.mkdir()
    np.save(folder / "encryption.npy", made.encodings.values.reshape(-1, *SHAPE))
    np.save(folder / "label.npy", made.encodings.labels)


@pytest.fixture
def folder(attacked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(attacked, tmp_path / "challenge"))


def test_a_challenge_folder_gets_an_image_for_every_encoding(
    attacked: Path, made: Simulation
) -> None:
    names = {path.name for path in attacked.iterdir()}
    assert names == {
        "encryption.npy",
        "label.npy",
        "decryption.npy",
        "recovery.npz",
        "manifest.json",
    }
    images = np.load(attacked / "decryption.npy").reshape(150, -1)
    # Signs are lost without a public part, magnitudes are not: each row is one of the two images of
    # its encoding.
    own = np.abs(made.private)[made.selection.private]
    assert np.abs(own - np.abs(images)[:, None]).max(axis=2).min(axis=1).max() < 1e-2


def test_out_takes_the_result(made: Simulation, tmp_path: Path) -> None:
    write(tmp_path / "in", made)
    result = call(
        "attack",
        tmp_path / "in",
        "--k-public",
        0,
        "--weighting",
        "half-normal",
        "--out",
        tmp_path / "out",
    )
    assert result.exit_code == 0, result.output
    assert np.load(tmp_path / "out/decryption.npy").shape == (150, *SHAPE)
    assert json.loads((tmp_path / "out/scheme.json").read_text())["shape"] == list(SHAPE)
    assert {path.name for path in (tmp_path / "in").iterdir()} == {"encryption.npy", "label.npy"}


def test_score_of_images_with_the_truth_beside_them(folder: Path, made: Simulation) -> None:
    perfect = made.private[made.selection.private[:, 0]].reshape(-1, *SHAPE)
    np.save(folder / "decryption.npy", perfect)
    (folder / "recovery.npz").unlink()
    np.savez(folder / "truth.npz", private=made.private, selection_private=made.selection.private)
    result = call("score", folder, "--json")
    assert result.exit_code == 0, result.output
    scores = json.loads(result.stdout)
    assert scores["challenge"]["max_ssim"] == pytest.approx(1)
    assert scores["challenge"]["min_l2"] == 0
    assert 0.4 < scores["challenge"]["mean_ssim"] < 0.6
    first = len(
        np.unique(made.selection.private[:, 0])
    )  # rows are sorted: the last image is never the first of two
    assert scores["images"]["recognisable"] == first
    assert scores["images"]["mean_psnr"] == pytest.approx(100 * first / 20)
    assert "Max_SSIM 1.000" in call("score", folder).stdout


@pytest.mark.parametrize("kind", ["f4", "u1"])
def test_score_against_a_file_of_images(
    kind: str, folder: Path, made: Simulation, tmp_path: Path
) -> None:
    """Decryption as images, each once; the truth as numbers in [−1, 1] or as bytes; which were
    mixed is not known."""
    (folder / "recovery.npz").unlink()
    np.save(folder / "decryption.npy", made.private[:15].reshape(-1, *SHAPE))
    truth = made.private.reshape(-1, *SHAPE)
    np.save(
        tmp_path / "truth.npy",
        truth if kind == "f4" else np.rint((truth + 1) * 127.5).astype(np.uint8),
    )
    result = call("score", folder, "--private", tmp_path / "truth.npy", "--json")
    assert result.exit_code == 0, result.output
    scores = json.loads(result.stdout)
    assert "challenge" not in scores
    assert scores["images"]["recognisable"] == 15
    assert scores["images"]["matches"].count(-1) == 5


def test_images_each_once_are_scored_without_the_challenges_rules(
    folder: Path, made: Simulation
) -> None:
    (folder / "recovery.npz").unlink()
    np.save(folder / "decryption.npy", made.private.reshape(-1, *SHAPE))
    np.savez(folder / "truth.npz", private=made.private, selection_private=made.selection.private)
    scores = json.loads(call("score", folder, "--json").stdout)
    assert scores["images"]["mean_ssim"] == pytest.approx(1)
    assert "challenge" not in scores


def test_images_that_are_not_the_private_ones_are_3(
    folder: Path, made: Simulation, tmp_path: Path
) -> None:
    (folder / "recovery.npz").unlink()
    np.save(folder / "decryption.npy", np.random.default_rng(5).uniform(-1, 1, (20, *SHAPE)))
    np.save(tmp_path / "truth.npy", made.private.reshape(-1, *SHAPE))
    assert call("score", folder, "--private", tmp_path / "truth.npy").exit_code == 3


def test_a_run_knows_its_images(made: Simulation, tmp_path: Path) -> None:
    np.save(tmp_path / "private.npy", made.private.reshape(-1, *SHAPE))
    np.save(tmp_path / "labels.npy", np.arange(20) % 3)
    np.save(
        tmp_path / "public.npy",
        np.random.default_rng(3).standard_normal((10, 768)).astype(np.float32),
    )
    scheme = [
        "--private",
        tmp_path / "private.npy",
        "--public",
        tmp_path / "public.npy",
        "--k-public",
        1,
    ]
    images = ["--shape", "16x16x3", "--labels", tmp_path / "labels.npy", "--m", 150, "--seed", 0]
    assert call("simulate", tmp_path / "run", *scheme, *images).exit_code == 0
    assert np.load(tmp_path / "run/labels.npy").shape == (150, 3)
    assert json.loads((tmp_path / "run/scheme.json").read_text())["shape"] == list(SHAPE)
    assert call("attack", tmp_path / "run").exit_code == 0
    scores = json.loads(call("score", tmp_path / "run", "--json").stdout)
    assert (scores["exact"], scores["wrong"]) == (20, 0)
    assert scores["images"]["mean_ssim"] > 0.99
    flipped = call("simulate", tmp_path / "flipped", *scheme, *images, "--flips")
    assert flipped.exit_code == 0
    assert not np.array_equal(
        np.load(tmp_path / "run/encodings.npy"), np.load(tmp_path / "flipped/encodings.npy")
    )
    cropped = call("simulate", tmp_path / "cropped", *scheme, *images, "--crops", 2)
    assert cropped.exit_code == 0
    assert json.loads((tmp_path / "cropped/manifest.json").read_text())["crops"] == 2


def test_the_released_augmentation_and_units_are_those_of_the_library(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (9, 75)).astype(np.uint8)
    np.save(tmp_path / "x.npy", x)
    how = ["--private", tmp_path / "x.npy", "--shape", "5x5x3", "--m", 18, "--pairing", "epochs"]
    how += ["--flips", "--crops", 1, "--copies-per", "epoch", "--seed", 3]
    assert call("simulate", tmp_path / "run", *how, "--units", "released").exit_code == 0
    sim = simulate(
        Scheme(2, pairing="epochs"),
        private=x,
        m=18,
        image_shape=(5, 5, 3),
        flips="epoch",
        crops=1,
        crops_per="epoch",
        units="released",
        rng=3,
    )
    np.testing.assert_array_equal(np.load(tmp_path / "run/encodings.npy"), sim.encodings.values)
    noted = json.loads((tmp_path / "run/manifest.json").read_text())
    assert (noted["copies_per"], noted["units"]) == ("epoch", "released")


@pytest.mark.parametrize("shape", ["8x8", "8by8", "x", "8x8x3x1"])
def test_a_shape_that_does_not_fit_is_one_sentence(shape: str, tmp_path: Path) -> None:
    result = call(
        "simulate", tmp_path / "run", "--n-private", 4, "--d", 192, "--m", 5, "--shape", shape
    )
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "shape" in result.stderr
    assert not (tmp_path / "run").exists()


def test_a_broken_challenge_folder_is_one_sentence_and_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in/encryption.npy", np.ones((4, 3, 8, 8)))
    result = call("attack", tmp_path / "in")
    assert result.exit_code == 2
    assert "channels last" in result.stderr
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["encryption.npy"]


def test_a_challenge_as_released_is_attacked_without_options(tmp_path: Path) -> None:
    """Bundled images, two public ones per encoding: the verdict says how many are recognisable, and
    that none is exact."""
    images, _ = fashion_mnist()
    x = images[:, ::2, ::2].reshape(len(images), -1).astype(np.float32) / np.float32(127.5) - 1
    made = simulate(
        Scheme(2, 2, "released", "random", "epochs"),
        private=x[:8],
        public=x[8:],
        m=160,
        image_shape=(14, 14),
        rng=0,
    )
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in/encryption.npy", made.encodings.values.reshape(-1, 14, 14))
    np.save(tmp_path / "like.npy", x[100:])
    result = call(
        "attack",
        tmp_path / "in",
        "--k-public",
        2,
        "--like",
        tmp_path / "like.npy",
        "--n-private",
        8,
    )
    assert result.exit_code in (0, 3), result.output
    assert "of 8 private images come back recognisably" in result.stdout
    assert "none is exact" in result.stdout
    assert np.load(tmp_path / "in/decryption.npy").shape == (160, 14, 14)


def test_the_demo_brings_its_own_images(tmp_path: Path) -> None:
    result = call("audit", "--demo", "images", "--private", "gaussian", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "--demo brings its own images" in result.stderr


def test_images_in_units_of_their_own_through_the_command_line_alone(tmp_path: Path) -> None:
    """A four-dimensional file keeps its shape, like images are bytes, units are found or said."""
    pixels = fashion_mnist()[0][:, ::2, ::2]
    unit = Units("mean/std", (0.3,), (0.2,))
    x = unit.mixed(pixels.reshape(240, -1).astype(np.float32) / 127.5 - 1, (14, 14))
    scheme = Scheme(2, 1, weighting="released", signs="random")
    sim = simulate(scheme, private=x[:6], public=x[6:120], m=90, image_shape=(14, 14), rng=0)
    np.save(tmp_path / "encodings.npy", sim.encodings.values.reshape(-1, 14, 14, 1))
    np.save(tmp_path / "like.npy", pixels[120:])
    told = ["--k-public", 1, "--weighting", "released", "--signs", "random", "--n-private", 6]
    images = ["--like", tmp_path / "like.npy", "--private-like", tmp_path / "like.npy"]
    result = call(
        "attack", tmp_path / "encodings.npy", *told, *images, "--units", "0.3/0.2", "--flips",
        "--out", tmp_path / "out", "--json",
    )  # fmt: skip
    assert result.exit_code in (0, 3), result.output
    facts = json.loads(result.stdout)
    assert facts["evidence"]["units"] == "mean/std"
    assert np.abs(np.load(tmp_path / "out/recovery.npz")["vectors"]).max() <= 1
    wrong = call("attack", tmp_path / "encodings.npy", *told, "--units", "a/b", "--out", "x")
    assert (wrong.exit_code, "--units a/b: give a name" in wrong.output) == (2, True)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder of six pictures of 12×12 pixels."""
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "photos"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (6, 12, 12, 3), dtype=np.uint8)
    for number, one in enumerate(pixels):
        image.fromarray(one).save(folder / f"{number}.png")
    return folder


def test_a_folder_of_images_tells_its_shape_and_bytes_beside_it_are_brought_to_its_units(
    photos: Path, tmp_path: Path
) -> None:
    public = np.random.default_rng(1).integers(0, 256, (40, 432), dtype=np.uint8)
    np.save(tmp_path / "public.npy", public.astype(np.float32))
    result = call(
        "simulate", tmp_path / "run", "--private", photos, "--public", tmp_path / "public.npy",
        "--k-public", 2, "--weighting", "released", "--m", 12, "--crops", 1, "--flips", "--seed", 1,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "bytes" in result.stderr
    assert np.abs(np.load(tmp_path / "run" / "encodings.npy")).max() <= 1
    assert json.loads((tmp_path / "run" / "scheme.json").read_text())["shape"] == [12, 12, 3]


def test_a_run_tells_the_attack_of_its_crops_unless_it_is_told_otherwise(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    call("simulate", run, "--private", photos, "--m", 12, "--crops", 2, "--flips", "--seed", 1)
    seen: list[tuple[bool, int]] = []

    def note(encodings: object, public: object, name: str, told: dict, how: object) -> object:
        seen.append((bool(told.get("flips")), int(str(told.get("crops")))))
        raise InputError("seen")

    monkeypatch.setattr("unveil.attacks.recover_told", note)
    call("attack", run)
    call("attack", run, "--crops", 0)
    assert seen == [(True, 2), (False, 0)]


def test_images_of_unsettled_sign_are_scored_and_mirrored_ones_either_way_round(
    photos: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    call("simulate", run, "--private", photos, "--m", 12, "--seed", 1)
    truth, _ = runs.read_truth(run / "truth.npz")
    mirrored = truth.reshape(-1, 12, 12, 3)[:, :, ::-1].reshape(truth.shape)
    n, m = len(truth), 12
    found = Recovery(
        vectors=np.ascontiguousarray(mirrored),
        status=np.full(n, "unresolved", dtype="<U10"),
        signed=False,
        members=sparse.csr_array(np.ones((m, n), bool)),
        residual=np.zeros(n),
        reasons=("",) * n,
        attack="natural",
        explanation="as found",
        seconds={},
        evidence={"recognisable": [1.0] * n, "mirrored": True},
    )
    runs.write_recovery(run / "recovery.npz", found)
    result = call("score", run, "--json")
    assert json.loads(result.stdout)["images"]["mean_ssim"] == pytest.approx(1)
    # What images leave open is said, and not that they reproduce encodings.
    assert found.summary()[0] == "As found."


def test_an_error_that_asks_for_the_shape_names_the_option(tmp_path: Path) -> None:
    result = call(
        "simulate", tmp_path / "run", "--crops", 2, "--m", 10, "--n-private", 5, "--d", 48
    )
    assert result.exit_code == 2
    assert "--shape" in result.stderr
