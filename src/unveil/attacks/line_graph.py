"""The line-graph attack, k_private = 2: who mixes whom by Whitney's theorem (Huang, Song, Tao,
Zhang and Zhuo, 2020).

    1  c ← LearnPublic   the public part of every encoding, where there is one
                         (`supports.learn_public`)
    2  M ← GramExtract   overlaps of all encodings: the line graph of the private pairs
                         (`gram.gram_extract`)
    3  H ← root of M     vectors are vertices, encodings edges (`rivals.line_graph.root`); where
                         overlaps were misread and a component is no line graph, the root of the
                         nearest one (`rivals.line_graph.nearest`)
    4  x ← every pixel, status ← certificate (`attacks.from_subsets`)

"InstaHide's sample complexity when mixing two private images" asks for exact overlaps of different
pairs that leave H connected. It stops at the pairs, since finding values from arbitrary signs is
hard in the worst case. Here encodings may repeat a pair, components are read one by one, and a
wrong overlap is outvoted. Values are found by `solve.pairs.peeled` and `solve.pixels.settle`, for
vectors in general position. No pairs are tried but those of the root.

Cost: the overlaps; the root itself is O(overlaps), milliseconds for thousands of encodings.
"""

from __future__ import annotations

from dataclasses import replace

from numpy.typing import ArrayLike

from unveil.attacks.from_subsets import from_subsets
from unveil.attacks.overlaps import read_overlaps
from unveil.checks import InputError
from unveil.encodings import Encodings, as_public
from unveil.parallel import Stopwatch
from unveil.records import Overlaps, Progress, Recovery
from unveil.rivals.line_graph.root import LineGraphRoot, line_graph_root
from unveil.scheme import FIXED_WEIGHTINGS
from unveil.seeds import Rng, child, root

NAME = "line-graph"


def line_graph(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    overlaps: Overlaps | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private vector that the root of the overlaps determines, each with its status and the
    reason for it.

    `overlaps`: to start from, where they are known from elsewhere; some may be wrong.
    """
    scheme, clock = encodings.scheme, Stopwatch()
    if scheme.k_private != 2:
        raise InputError(
            f"k_private={scheme.k_private}: overlaps are a line graph for k_private=2 only; "
            "use attack='full'"
        )
    scheme.require_weighting(*FIXED_WEIGHTINGS)
    # 1. and 2. Overlaps, the public part taken out where there is one.
    P = as_public(public, encodings)
    P = P if scheme.k_public else None
    M, supports = read_overlaps(
        encodings, P, overlaps, clock, memory_limit=memory_limit, progress=progress
    )
    # 3. The root, and what it says of itself.
    with clock("root"):
        H = line_graph_root(M)
    facts = {
        "components": H.components,
        "components_not_line_graphs": len(H.broken),
        "contradicted_overlaps": int(H.contradicted.sum()) // 2,
        "encodings_with_two_roots": int((~H.unique).sum()),
    }
    # 4. Values with their certificate.
    draw = child(root(rng), "pixels")
    recovery = from_subsets(
        encodings,
        NAME,
        H.rows,
        H.members,
        draw,
        clock,
        public=P,
        supports=supports,
        facts=facts,
        memory_limit=memory_limit,
        progress=progress,
    )
    return _told(recovery, H)


def _told(recovery: Recovery, H: LineGraphRoot) -> Recovery:
    """What the root knows of its limits, in words; the certificate has judged the vectors."""
    text = recovery.explanation
    if not H.unique.all():
        text += f"; {int((~H.unique).sum())} encodings are in components with two roots"
    if H.broken:
        first = H.broken[0]
        text += f"; overlaps are no line graph in {len(H.broken)} of {H.components} components, "
        text += f"e.g. {first.why}"
    return replace(recovery, explanation=text)


ATTACK = line_graph
