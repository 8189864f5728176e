"""Every result as a frame, as JSON, as a file, as a picture, and in a notebook."""

import base64
import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

import unveil
from unveil.auditing.result import Audit, CurvePoint, RecordRisk, Verdict
from unveil.data import load_vectors
from unveil.engine import runs
from unveil.report.schema import audit_schema
from unveil.shown import as_bytes, png_uri


def audit_result():
    risks = (
        RecordRisk(0, "=HYPERLINK(1)", "exact", 6, 0, 0.0, 1.0, 5, 20, "verified", "proved"),
        RecordRisk(1, "<b>Ann</b>", "not recovered", 0, 0, None, float("nan"), 3, None, "", "few"),
    )
    curve = (CurvePoint(10, 0.0, 0.0, 0.0, 0.2, 0.0, 3), CurvePoint(40, 0.5, 0.0, 0.3, 0.7, 0.5, 3))
    verdict = Verdict("leaks", "1 of 2 records comes back", "All of them.", ("By relations.",))
    data = {"kind": "features"}
    return Audit(verdict, {"k_private": 2}, data, 40, "relations", "found", risks, curve=curve)


TABLE = np.random.default_rng(0).standard_normal((12, 6)).astype(np.float32)


def made():
    scheme = unveil.Scheme(k_private=2)
    sim = unveil.simulate(scheme, private=TABLE, m=60, rng=0)
    encodings = unveil.Encodings(sim.encodings.values, scheme, None, columns="abcdef")
    recovery = unveil.recover(encodings, rng=0)
    W = np.zeros((60, 12), int)
    np.put_along_axis(W, sim.selection.private, 1, axis=1)
    overlaps = unveil.Overlaps.from_array(W @ W.T, k_private=2)
    supports = np.array([[0, 3], [1, -1]]), np.array([0.9, 0.4]), "diagonal"
    return {
        "simulation": sim,
        "encodings": encodings,
        "recovery": recovery,
        "images": replace(recovery, image_shape=(2, 3), columns=()),
        "scores": unveil.score(recovery, TABLE),
        "overlaps": overlaps,
        "floral": unveil.find_floral_submatrix(overlaps),
        "supports": unveil.Supports(*supports, np.array([True, False])),
        "image scores": unveil.ImageScores(*map(np.array, ([0, -1], [0.9, 0.0], [30.0, 0.0]))),
        "challenge scores": unveil.ChallengeScores(0.5, 0.3, 0.1, 0.2),
        "plan": unveil.plan(scheme, 20, 200, 100),
        "audit": audit_result(),
    }


RESULTS = made()


@pytest.fixture(params=RESULTS)
def result(request):
    return RESULTS[request.param]


class Balanced(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_result_is_a_frame_json_a_page_and_a_file(result, tmp_path):
    frame = result.to_frame()
    assert len(frame.columns) == len(set(frame.columns)) > 0
    content = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert content == json.loads(json.dumps(result.to_dict()))
    assert len(content) > 1
    page = Balanced(result._repr_html_())
    assert page.open == []
    assert 1 <= page.seen.count("tr") <= 11
    assert not {"script", "style"} & set(page.seen)
    for suffix in (".csv", ".json", ".html"):
        assert result.save(tmp_path / f"result{suffix}").stat().st_size > 0
    assert json.loads((tmp_path / "result.json").read_text())
    with (tmp_path / "result.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert {len(line) for line in lines} == {len(frame.columns)}
    assert len(lines) == len(frame) + 1


def test_a_recovery_keeps_the_names_of_its_columns_and_says_what_is_open():
    recovery = RESULTS["recovery"]
    doubtful = np.zeros(recovery.vectors.shape, bool)
    doubtful[1, 2] = True
    frame = replace(recovery, doubtful=doubtful).to_frame()
    assert list(frame) == ["status", "encodings", "residual", "reason", *"abcdef"]
    assert np.flatnonzero(frame["c"].isna()).tolist() == [1]
    assert frame["b"].to_numpy() == pytest.approx(recovery.vectors[:, 1])
    assert frame["encodings"][0] == int(recovery.members[:, [0]].sum())
    facts = recovery.to_dict()
    assert (
        facts["verified"] == int(recovery.verified.sum()) == (frame["status"] == "verified").sum()
    )
    assert facts["columns"] == list("abcdef")
    assert np.allclose(facts["vectors"], recovery.vectors)
    names = ("status", "x", "x", "d", "e", "f")
    renamed = replace(recovery, columns=names).to_frame()
    assert list(renamed)[4:] == ["status (1)", "x", "x (3)", "d", "e", "f"]
    shared = RESULTS["overlaps"].to_frame()
    assert shared["shared"].sum() == np.triu(RESULTS["overlaps"].toarray(), 1).sum()
    assert (shared["encoding"] < shared["other"]).all()


def test_what_comes_from_outside_is_text(tmp_path):
    audit, recovery = RESULTS["audit"], RESULTS["recovery"]
    assert "<b>Ann" not in audit._repr_html_()
    assert "&lt;b&gt;Ann" in audit._repr_html_()
    names = ("=1+1", "@x", "<script>", "d", "e", "f")
    named = replace(recovery, columns=names)
    assert "<script>" not in named._repr_html_()
    assert "'=HYPERLINK(1)" in audit.save(tmp_path / "records.csv").read_text()
    assert "'=1+1,'@x" in named.save(tmp_path / "found.csv").read_text().splitlines()[0]
    assert "50 more rows" in RESULTS["encodings"]._repr_html_()


def test_an_audit_is_in_the_form_of_the_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    audit = unveil.audit(TABLE, m=(60, 60), seeds=1, rng=0)
    jsonschema.validate(audit.to_dict(), audit_schema())
    saved = json.loads(audit.save(tmp_path / "audit.json").read_text())
    jsonschema.validate(saved, audit_schema())
    assert "<html" in audit.save(tmp_path / "audit.html").read_text()


@pytest.mark.parametrize("kind", ["encodings", "recovery", "images", "overlaps", "floral", "audit"])
def test_a_figure_is_not_empty_and_not_kept(kind, tmp_path):
    before = pyplot.get_fignums()
    figure = RESULTS[kind].plot()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert np.asarray(canvas.buffer_rgba())[..., :3].std() > 5
    assert pyplot.get_fignums() == before
    assert RESULTS[kind].save(tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    if kind == "images":
        assert len(figure.axes) == len(RESULTS[kind])
        assert figure.axes[0].get_images()[0].get_array().shape == (2, 3)
    if kind == "recovery":
        labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        assert f"{int(RESULTS[kind].verified.sum())} verified" in labels


def test_what_has_nothing_to_show_says_so(tmp_path):
    empty = unveil.Recovery.empty(RESULTS["encodings"], "relations", "no relations", {})
    with pytest.raises(unveil.InputError, match="no relations"):
        empty.plot()
    assert empty.save(tmp_path / "found.csv").read_text().startswith("status,encodings")
    with pytest.raises(unveil.InputError, match="no leakage curve"):
        replace(RESULTS["audit"], curve=()).plot()
    with pytest.raises(TypeError, match="no picture"):
        RESULTS["scores"].plot()
    (tmp_path / "found.csv").unlink()
    for name in ("x.xlsx", "x.npz", "x.png", "folder"):
        with pytest.raises(unveil.InputError, match=r"Scores is saved as \.csv, \.json"):
            RESULTS["scores"].save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(unveil.InputError, match="make it first"):
        RESULTS["scores"].save(tmp_path / "none" / "x.csv")


def test_arrays_images_and_runs_come_back(tmp_path):
    recovery, encodings, images = (RESULTS[name] for name in ("recovery", "encodings", "images"))
    assert np.array_equal(np.load(encodings.save(tmp_path / "y.npy")), encodings.values)
    assert np.array_equal(np.load(recovery.save(tmp_path / "x.npy")), recovery.vectors)
    back = runs.read_recovery(recovery.save(tmp_path / "x.npz"))
    assert back.columns == recovery.columns == tuple("abcdef")
    assert back.status.tolist() == recovery.status.tolist()
    assert Balanced(images._repr_html_()).seen.count("img") == min(12, len(images))
    folder = images.save(tmp_path / "found")
    assert len(list(folder.glob("recovered-*-verified.png"))) == int(images.verified.sum())
    (folder / "recovered.csv").unlink()
    assert load_vectors(folder).shape == images.vectors.shape
    run = RESULTS["simulation"].save(tmp_path / "run")
    values = runs.read_encodings(run).values
    assert np.array_equal(values, RESULTS["simulation"].encodings.values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([-1.2, 1.3], [0, 255]),
        ([-4.0, 4.0], [0, 255]),
    ],
)
def test_pixels_as_bytes(values, expected):
    assert as_bytes(np.array(values)).tolist() == expected


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (4, 3, 1), (7, 4, 3)])
def test_every_pixel_of_a_png_comes_back(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    head, body = png_uri(pixels).split(",")
    assert head == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(body))) as image:
        assert np.array_equal(np.asarray(image).reshape(shape), pixels)
