# The public names, each where it lives: what `__init__.py` loads on demand, and type checkers read.
from ._version import __version__ as __version__
from .attacks import recover
from .auditing.audit import audit
from .auditing.lint import lint_encoder, lint_encodings
from .auditing.plan import Plan, plan
from .auditing.result import Audit, Finding
from .certificate import certify
from .checks import InputError
from .data import read_challenge, read_table
from .encode import simulate
from .encodings import Encodings, Selection, Simulation
from .images import recover_images
from .paper import (
    find_all_florals,
    find_floral_submatrix,
    gram_extract,
    is_floral,
    learn_private_image,
    learn_public,
)
from .records import Floral, Overlaps, Supports
from .recovery import Recovery, Scores
from .scheme import Scheme
from .scoring import ChallengeScores, ImageScores, challenge_scores, image_scores, score

__all__ = [
    "Audit",
    "ChallengeScores",
    "Encodings",
    "Finding",
    "Floral",
    "ImageScores",
    "InputError",
    "Overlaps",
    "Plan",
    "Recovery",
    "Scheme",
    "Scores",
    "Selection",
    "Simulation",
    "Supports",
    "__version__",
    "audit",
    "certify",
    "challenge_scores",
    "find_all_florals",
    "find_floral_submatrix",
    "gram_extract",
    "image_scores",
    "is_floral",
    "learn_private_image",
    "learn_public",
    "lint_encoder",
    "lint_encodings",
    "plan",
    "read_challenge",
    "read_table",
    "recover",
    "recover_images",
    "score",
    "simulate",
]
