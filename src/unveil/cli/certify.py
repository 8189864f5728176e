"""`unveil certify`: are these vectors private vectors?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unveil.cli import options as of
from unveil.cli.group import main
from unveil.cli.terminal import echo_json, print_recovery, progress_bar

if TYPE_CHECKING:
    from unveil.encodings import Encodings


@main.command()
@click.argument("run", metavar="FOLDER", type=of.PATH)
@of.section(
    "Options",
    ("--encodings", of.PATH, "The encodings, where FOLDER holds no encodings.npy."),
    ("--public", of.PATH, "Public vectors, where FOLDER holds no public.npy."),
    ("--vectors", of.PATH, "Claimed vectors: .npy, (r, d)."),
    ("--members", of.PATH, "Who is mixed: .npy, (m, k_private) with −1 for unknown, or (m, r)."),
    ("--supports", of.PATH, "Public vectors of each encoding: .npy, (m, k_public)."),
)
@of.memory_option
@of.as_json
def certify(
    run: Path,
    encodings: Path | None,
    public: Path | None,
    vectors: Path | None,
    members: Path | None,
    supports: Path | None,
    as_json: bool,
) -> int:
    """Are these vectors private vectors? For vectors from any source.

    FOLDER is a run directory, or what `unveil attack --out` wrote. The claim is --vectors with
    --members, else recovery.npz, else truth.npz. Every encoding is made again from the claim, and
    each vector is verified only if no other reading of the encodings exists. Nothing is written.
    """
    from unveil.certificate import certify as certified
    from unveil.engine import files

    # 1. What was released, and what is claimed.
    release, P = _release(run, encodings, public)
    claim = _claim(run, vectors, members)
    if supports is not None:
        claim["supports"] = files.read_array(supports)
    with progress_bar("certify", not as_json) as progress:
        if release.scheme.k_public and release.scheme.k_private and "supports" not in claim:
            from unveil.paper import learn_public

            claim["supports"] = learn_public(release, P, progress=progress)
        # 2. What is proved.
        recovery = certified(release, public=P, progress=progress, **claim)
    facts = recovery.facts(values=False)
    if as_json:
        echo_json({"run": str(run), **facts})
    else:
        print_recovery(facts)
    return 0 if facts["verified"] else 3


def _release(run: Path, encodings: Path | None, public: Path | None) -> tuple[Encodings, Any]:
    from unveil.checks import InputError
    from unveil.data import load_vectors
    from unveil.encodings import Encodings, as_public
    from unveil.engine import runs

    if encodings is None and not (run / "encodings.npy").is_file():
        raise InputError(f"no encodings.npy in {run}: add --encodings with the released file")
    if encodings is None:
        release, listed = of.read_run(run)
    else:
        scheme, pixel_rms = runs.read_scheme(run / "scheme.json")
        release, listed = Encodings(load_vectors(encodings, "encodings"), scheme, pixel_rms), None
    return release, listed if public is None else as_public(public, release)


def _claim(run: Path, vectors: Path | None, members: Path | None) -> dict[str, Any]:
    """The arguments of `unveil.certify` that are the claim."""
    from unveil.checks import InputError
    from unveil.engine import files, runs

    if (vectors is None) != (members is None):
        raise InputError("--vectors and --members are one claim: give both, or none")
    if vectors is not None and members is not None:
        return {"vectors": files.read_array(vectors), "members": files.read_array(members)}
    if (run / "recovery.npz").is_file():
        found = runs.read_recovery(run / "recovery.npz")
        names = ("vectors", "members", "doubtful", "weights")
        return {name: getattr(found, name) for name in names}
    truth = run / "truth.npz"
    if not truth.is_file():
        raise InputError(
            f"no recovery.npz and no truth.npz in {run}: run `unveil attack` on it, or give "
            "--vectors and --members"
        )
    private, mixed = runs.read_truth(truth)
    if mixed is None:
        raise InputError(f"{truth.name} does not say who mixes whom: give --vectors and --members")
    claim: dict[str, Any] = {"vectors": private, "members": mixed}
    if "selection_public" in files.array_names(truth):
        supports = files.read_array(truth, "selection_public")
        claim |= {"supports": supports} if supports.shape[1] else {}
    return claim
