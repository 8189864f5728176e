"""What an attack gives back: private vectors with the evidence for each, and how they hold against
the truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.shown import (
    Shown,
    as_bytes,
    draw_images,
    new_figure,
    plain,
    png_of,
    png_tag,
    room,
    value_columns,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERIFIED, AMBIGUOUS, UNRESOLVED = STATUSES = "verified", "ambiguous", "unresolved"
COLOURS = {VERIFIED: "#009E73", AMBIGUOUS: "#E69F00", UNRESOLVED: "#D55E00"}
"""Of Okabe and Ito's palette, which readers who do not see red and green can tell apart."""


def vectors_of(count: int) -> str:
    return f"{count} private vector{'' if count == 1 else 's'}"


@dataclass(frozen=True, eq=False)
class Recovery(Shown):
    """Private vectors with the evidence for each.

    Attributes
    ----------
    vectors : array of shape (r, d)
        The recovered vectors.
    status : array of str of shape (r,)
        "verified": re-encoding reproduces every encoding known to mix these vectors only, from
        more equations than unknowns, and no other labelling does.
        "ambiguous": the equations hold, but another solution does as well as this one.
        "unresolved": the equations do not hold.
    signed : bool
        False: one sign per pixel, common to all vectors, is not determined.
    members : sparse array of bool of shape (m, r)
        Which encodings mix which vectors.
    residual : array of shape (r,)
        How far re-encoding is from the encodings, per vector.
    reasons : tuple of str
        Why each vector has its status.
    attack, explanation : str
        Which attack this is, and what it found, in a sentence.
    seconds : mapping
        Time per stage.
    evidence : mapping
        Further facts of the attack, for reports.
    weights : sparse array of shape (m, r), or None
        What each encoding gives to each vector, at the places of `members`; None when the scheme
        fixes them.
    doubtful : array of bool of shape (r, d), or None
        Values that the encodings leave open, though the rest of the vector is determined; None:
        there are none.
    explained : int
        How many encodings the vectors reproduce, exactly or up to noise; 0 where the attack does
        not say.
    exact : bool
        They are reproduced to rounding, so that there is no noise to allow for.
    columns, image_shape
        What the encodings call their values, and the shape of an image, where they say so.

    References
    ----------
    `alg:private_attack2`, `thm:main`, `remark:ambiguity` of the paper; docs/certificate.md.

    Examples
    --------
    >>> import unveil
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=12, m=100, d=200, rng=0)
    >>> recovery = unveil.recover(sim.encodings, rng=0)
    >>> len(recovery), int(recovery.verified.sum()), recovery.signed
    (12, 12, False)
    """

    vectors: NDArray[np.float32]
    status: NDArray[np.str_]
    signed: bool
    members: sparse.csr_array
    residual: NDArray[np.float64]
    reasons: tuple[str, ...]
    attack: str
    explanation: str
    seconds: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    weights: sparse.csr_array | None = None
    doubtful: NDArray[np.bool_] | None = None
    explained: int = 0
    exact: bool = False
    columns: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None

    @classmethod
    def empty(
        cls,
        encodings: Encodings,
        attack: str,
        explanation: str,
        seconds: Mapping[str, float],
        evidence: Mapping[str, Any] | None = None,
        *,
        exact: bool = False,
    ) -> Recovery:
        """A recovery without vectors; `explanation` says why.

        exact : encodings agree to rounding, so that there is no noise to allow for.
        """
        # Of the right shapes: who counts, scores or saves needs no special case for nothing.
        return cls(
            vectors=np.empty((0, encodings.d), np.float32),
            status=np.empty(0, dtype="<U10"),  # "unresolved" has ten letters
            signed=False,
            members=sparse.csr_array((encodings.m, 0), dtype=bool),
            residual=np.empty(0),
            reasons=(),
            attack=attack,
            explanation=explanation,
            seconds=seconds,
            evidence={} if evidence is None else evidence,
            exact=exact,
        )

    def about(self, encodings: Encodings) -> Recovery:
        """The same, with the names of columns and the shape of images that the encodings have."""
        return replace(self, columns=encodings.columns, image_shape=encodings.image_shape)

    @property
    def verified(self) -> NDArray[np.bool_]:
        """Which vectors are verified."""
        return np.asarray(self.status == VERIFIED)

    @property
    def uses(self) -> NDArray[np.int64]:
        """How many encodings mix each vector."""
        return np.diff(self.members.tocsc().indptr).astype(np.int64)

    def __len__(self) -> int:
        return len(self.vectors)

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Evidence first, then the values; an open value is not a number."""
        told = True if self.doubtful is None else ~self.doubtful
        values = np.where(told, self.vectors.astype(np.float64), np.nan)
        return {
            "status": self.status,
            "encodings": self.uses,
            "residual": self.residual,
            "reason": self.reasons,
            **value_columns(values, self.columns),
        }

    def facts(self, *, values: bool = True) -> dict[str, Any]:
        """The verdict and all evidence; values: with the vectors, and which of their values are
        open: without these an open value looks like any other."""
        names = "attack signed explanation status reasons residual seconds evidence recognisable"
        names += " vectors doubtful columns image_shape" * values
        out = {
            "verdict": self.verdict(),
            "verified": int(self.verified.sum()),
            "approximate": len(self._errors()),
            "encodings_used": self.uses,
            "summary": self.summary(),
        }
        facts: dict[str, Any] = plain({**out, **{n: getattr(self, n) for n in names.split()}})
        return facts

    @property
    def recognisable(self) -> int:
        """About how many images can be recognised, by the attack's own estimate."""
        return round(float(np.sum(self.evidence.get("recognisable", []))))

    def verdict(self) -> str:
        """In a sentence, for a reader who has no truth to compare with."""
        count = int(self.verified.sum())
        # An image attack proves nothing exactly: its own estimate of likeness stands in.
        if images := len(self.evidence.get("recognisable", [])):
            return (
                f"About {self.recognisable} of {images} private images come back recognisably, by "
                "the attack's own estimate, a negative included; none is exact."
            )
        if count:
            return f"{vectors_of(count)} recovered and verified, {self.signs()}."
        if self._errors():
            return f"Recovered up to noise, none verified: {self.explanation}."
        return f"No private vector verified: {self.explanation}."

    def signs(self) -> str:
        """What is known of signs, in words."""
        common = "up to one sign per pixel that all of them share"
        return "with their signs" if self.signed else common

    def summary(self, *, most: int = 5, nearly_all: float = 0.95) -> list[str]:
        """What was recovered, with what evidence, what was not and why.

        most        kinds of doubt that are listed
        nearly_all  share of the estimated number of vectors that counts as all
        """
        out = []
        # Images are about right at best: what is said besides takes the place of what is explained.
        if "recognisable" in self.evidence:
            out.append(f"{self.explanation[:1].upper()}{self.explanation[1:]}.")
        elif len(self):
            out += self._explained()
        # Grouped by reason: a hundred vectors in doubt for one cause are one line.
        errors = self._errors()
        if errors:
            low, high = f"{min(errors.values()):.2g}", f"{max(errors.values()):.2g}"
            span = f"±{low}" if low == high else f"±{low} to ±{high}"
            out.append(f"{len(errors)} {UNRESOLVED}: known to about {span} per pixel.")
        pairs = enumerate(zip(self.status.tolist(), self.reasons, strict=True))
        reasons = Counter(pair for i, pair in pairs if i not in errors and pair[0] != VERIFIED)
        doubts = reasons.most_common()
        out += [f"{count} {status}: {why}." for (status, why), count in doubts[:most]]
        if len(doubts) > most:
            others = sum(count for _, count in doubts[most:])
            out.append(f"{others} more that are not verified, each with its reason.")
        estimate = self.evidence.get("estimated_n_private")
        if estimate and np.isfinite(estimate) and len(self) < nearly_all * estimate:
            out.append(
                f"{len(self)} vectors were found; by how much the encodings have in common there "
                f"may be about {estimate:.0f}. That is an estimate, and can be far off."
            )
        return out

    def _explained(self) -> list[str]:
        """How many encodings the vectors reproduce, and from how many equations they come."""
        m, evidence = self.members.shape[0], self.evidence
        # Where the attack did not count, an encoding with members is one it explains.
        explained = evidence.get("encodings_explained")
        if explained is None:
            explained = int((np.diff(self.members.tocsr().indptr) > 0).sum())
        text = f"{explained} of {m} encodings are reproduced by the vectors found"
        if evidence.get("unknowns"):
            counts = f"{evidence['equations']:,} equations for {evidence['unknowns']:,} unknowns"
            # A floral is read from few of the encodings that hold its vectors.
            few = evidence["equations"] < explained * self.vectors.shape[1]
            held = f"{explained} of {m} encodings hold vectors found, which come from {counts}"
            text = held if few else f"{text}: {counts}"
        rest = f"{m - explained} encodings are not explained: what only they use is not among the"
        return [f"{text}."] + [f"{rest} vectors."] * (explained < m)

    def _errors(self) -> dict[int, float]:
        """The standard error of each vector that is known up to noise, by its number."""
        known = self.evidence.get("standard_error", [])
        if len(known) != len(self):
            return {}
        status = self.status.tolist()
        return {i: e for i, e in enumerate(known) if e is not None and status[i] == UNRESOLVED}

    def _sentence(self) -> str:
        return " ".join([f"{self.attack}: {self.explanation}.", *self.summary()])

    def _pixels(self, most: int | None = None) -> NDArray[Any] | None:
        """The first images as bytes; None where vectors are none, or have other channels than
        files of images: one or three."""
        shape = self.image_shape
        if shape is None or shape[2:] not in ((), (1,), (3,)):
            return None
        return as_bytes(self.vectors[:most]).reshape(-1, *shape)

    def _pictures(self) -> str:
        images = self._pixels(12) if len(self) else None
        named = enumerate([] if images is None else images)
        return "".join(png_tag(image, f"recovered image {i}") for i, image in named)

    def plot(self) -> Figure:
        """Images where the vectors are images; else how well each is supported."""
        if not len(self):
            raise InputError(f"nothing to draw: {self.explanation}")
        if self.image_shape is not None:
            titles = [f"{i}: {status}" for i, status in enumerate(self.status)]
            return draw_images(self.vectors, self.image_shape, titles, self.explanation)
        # The best supported first, status by status: bars of one colour stand together.
        uses = self.uses
        ranks = [STATUSES.index(status) for status in self.status]
        order = np.lexsort((-uses, np.array(ranks)))
        figure = new_figure(8, 4)
        axis = figure.add_subplot()
        axis.bar(range(len(order)), uses[order], color=[COLOURS[self.status[i]] for i in order])
        # Bars of no height, for the legend: it names a status that did not occur as well.
        for status, colour in COLOURS.items():
            axis.bar(0, 0, color=colour, label=f"{int((self.status == status).sum())} {status}")
        axis.set(xlabel="recovered vector", ylabel="encodings that mix it")
        axis.set_title(self.explanation, wrap=True, fontsize=10)
        axis.legend()
        return figure

    def _save(self, target: Path) -> bool:
        """.npy: the vectors; .npz: all, as `unveil attack` writes it; a folder: a PNG for every
        image, named by its number and status, with the table."""
        files = room("engine.files")
        if target.suffix == ".npy":
            files.write_array(target, self.vectors)
        elif target.suffix == ".npz":
            room("engine.runs").write_recovery(target, self)
        elif target.suffix or self.image_shape is None:
            return False
        else:
            images = self._pixels()
            if images is None:
                raise InputError(
                    f"images of {self.image_shape[2]} channels: PNG files take 1 or 3; save as "
                    ".npy instead"
                )
            with files.whole_folder(target) as part:
                for number, image in enumerate(images):
                    name = f"recovered-{number:04d}-{self.status[number]}.png"
                    files.write_bytes(part / name, png_of(image))
                self.save(part / "recovered.csv")
        return True


@dataclass(frozen=True, eq=False)
class Scores(Shown):
    """A recovery held against the truth.

    Attributes
    ----------
    exact : int
        Distinct private vectors returned as verified with every pixel within tolerance.
    wrong : int
        Verified vectors equal to no private vector.
    missing : int
        Private vectors not returned exactly.
    matches : array of shape (r,)
        The private vector each recovered one equals, or −1.
    nearest : array of shape (r,)
        The private vector nearest to each recovered one.
    error : array of shape (r,)
        Largest pixel error to the nearest.
    tolerance : float
        Largest error of a pixel that counts as equal, in the units of the data.
    """

    exact: int
    wrong: int
    missing: int
    matches: NDArray[np.int64]
    nearest: NDArray[np.int64]
    error: NDArray[np.float64]
    tolerance: float

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {name: getattr(self, name) for name in ("matches", "nearest", "error")}

    def facts(self) -> dict[str, Any]:
        # The tolerance belongs to the counts: another one gives other counts.
        names = ("exact", "wrong", "missing", "tolerance")
        return {**{name: getattr(self, name) for name in names}, **self._columns()}

    def _sentence(self) -> str:
        return f"exact {self.exact}, wrong {self.wrong}, missing {self.missing}"

    def verdict(self, recovery: Recovery) -> str:
        """In a sentence, the worst first: one wrong vector outweighs all that are right."""
        total = vectors_of(self.exact + self.missing)
        if self.wrong:
            return (
                f"WRONG: {self.wrong} of {vectors_of(int(recovery.verified.sum()))} verified equal "
                "none in the truth; if this truth is what was encoded, trust nothing here and "
                "report a bug."
            )
        if self.exact:
            return f"{self.exact} of {total} recovered exactly, {recovery.signs()}; none wrong."
        return f"0 of {total} recovered exactly; none wrong."
