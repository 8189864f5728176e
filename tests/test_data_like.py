"""Arrays, tensors, frames and paths are taken wherever data are, and mean the same."""

import numpy as np
import pytest

import unveil
from unveil.auditing.release import _labels
from unveil.data import load_dataset

NAMES = ["age", "income", "height", "weight", "pulse", "pressure"]
TABLE = np.random.default_rng(0).standard_normal((12, 6)).astype(np.float32)


class Tensor:
    """What of a tensor is used."""

    dtype = "torch.float32"

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


class Frame:
    """What of a frame is used, of pandas and of Polars."""

    def __init__(self, values, columns):
        self.values, self.shape = values, np.shape(values)
        self.columns = list(columns)[: self.shape[1]]
        self.columns += [f"c{i}" for i in range(len(self.columns), self.shape[1])]

    def __len__(self):
        return len(self.values)

    def to_numpy(self):
        return self.values


def as_path(values, tmp_path, columns=None):
    path = tmp_path / "data.npy"
    np.save(path, values)
    return path


def as_csv(values, tmp_path):
    path = tmp_path / "data.csv"
    text = "\n".join([",".join(NAMES), *(",".join(map(repr, row)) for row in values.tolist())])
    path.write_text(text)
    return path


FORMS = {
    "array": lambda values, _: values,
    "list": lambda values, _: values.tolist(),
    "tensor": lambda values, _: Tensor(values),
    "frame": lambda values, _: Frame(values, NAMES),
    "path": as_path,
    "text": lambda values, tmp_path: str(as_path(values, tmp_path)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_border_takes_every_form(form, tmp_path):
    give = lambda values: FORMS[form](values, tmp_path)  # noqa: E731
    scheme = unveil.Scheme(2)
    sim = unveil.simulate(scheme, private=give(TABLE), m=60, rng=0)
    assert np.array_equal(sim.private, TABLE)
    encodings = unveil.Encodings(give(sim.encodings.values), scheme, None)
    assert np.array_equal(encodings.values, sim.encodings.values)
    recovery = unveil.recover(encodings, rng=0)
    assert unveil.score(recovery, give(TABLE)).exact == 12


@pytest.mark.parametrize("form", FORMS)
def test_public_vectors_too(form, tmp_path):
    public = np.random.default_rng(1).standard_normal((8, 40)).astype(np.float32)
    scheme = unveil.Scheme(2, 1)
    sim = unveil.simulate(scheme, 8, public=FORMS[form](public, tmp_path), m=20, rng=0)
    given = FORMS[form](public, tmp_path)
    supports = unveil.learn_public(sim.encodings, given)
    assert len(supports.indices) == 20
    assert unveil.gram_extract(sim.encodings, given, supports=supports).m == 20


@pytest.mark.parametrize("form", [*FORMS, "csv"])
def test_an_audit_takes_them_all(form, tmp_path):
    source = as_csv(TABLE, tmp_path) if form == "csv" else FORMS[form](TABLE, tmp_path)
    data = load_dataset(source, rng=np.random.default_rng(0))
    assert data.values.shape == TABLE.shape
    if form in ("csv", "frame"):
        assert data.columns == tuple(NAMES)
        assert np.allclose(data.restore(data.values), TABLE, atol=1e-5)
    else:
        assert np.array_equal(data.values, TABLE)


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_names_of_columns_are_kept_from_data_to_recovery(form, tmp_path):
    source = as_csv(TABLE, tmp_path) if form == "csv" else Frame(TABLE, NAMES)
    sim = unveil.simulate(unveil.Scheme(2), private=source, m=60, rng=0)
    recovery = unveil.recover(sim.encodings, rng=0)
    assert sim.encodings.columns == recovery.columns == tuple(NAMES)


def test_a_frame_of_pandas_is_an_audit_of_its_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = [f"person {i}" for i in range(len(TABLE))]
    frame = pandas.DataFrame(TABLE, columns=NAMES, index=names)
    data = load_dataset(frame, rng=np.random.default_rng(0))
    assert (data.kind, data.names, data.columns) == ("features", tuple(names), tuple(NAMES))
    audit = unveil.audit(frame, m=(80, 80), seeds=1, sensitive="income", rng=0)
    assert audit.records[0].name == "person 0"
    assert any(meaning.kind == "inference" for meaning in audit.meanings)
    assert audit.to_frame()["name"].tolist() == names


def test_numbers_of_mixed_kinds_are_numbers():
    values = np.array([[1, 2.5, True], [0, 1.5, False]], dtype=object)
    encodings = unveil.Encodings(Frame(values, ["a", "b", "c"]), unveil.Scheme(2))
    assert encodings.values.tolist() == [[1, 2.5, 1], [0, 1.5, 0]]


def test_names_must_be_as_many_as_values():
    with pytest.raises(unveil.InputError, match="2 columns of 6 values"):
        unveil.Encodings(TABLE, unveil.Scheme(2), columns=["a", "b"])


def test_a_missing_path_is_named():
    with pytest.raises(unveil.InputError, match=r"nowhere\.npy"):
        unveil.Encodings("nowhere.npy", unveil.Scheme(2))


def test_bytes_of_images_in_a_file_are_scored_as_bytes(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 64)).astype(np.uint8)
    path = as_path(images, tmp_path)
    assert unveil.image_scores(path, path, (8, 8)).mean_ssim == pytest.approx(1)


def test_labels_come_from_a_file_and_from_every_form(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("\n".join(["a", "b"] * 6))
    classes = np.array([0, 1] * 6)
    for given in (path, str(path), classes, Tensor(classes), ["a", "b"] * 6):
        assert _labels(given, 12).tolist() == classes.tolist()


def test_a_pipeline_of_scikit_learn_goes_in_and_its_names_come_out():
    pandas, pipeline = pytest.importorskip("pandas"), pytest.importorskip("sklearn.pipeline")
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    scaled = pipeline.make_pipeline(StandardScaler()).set_output(transform="pandas")
    private = scaled.fit_transform(pandas.DataFrame(TABLE, columns=NAMES))
    sim = unveil.simulate(unveil.Scheme(2), private=private, m=80, rng=0)
    released = sim.encodings.to_frame().set_axis(NAMES, axis=1)
    released = pipeline.make_pipeline(FunctionTransformer(np.abs)).fit_transform(released)
    recovery = unveil.recover(unveil.Encodings(released, sim.encodings.scheme, None), rng=0)
    assert list(recovery.to_frame())[-6:] == NAMES
    assert unveil.score(recovery, private).exact == len(TABLE)
