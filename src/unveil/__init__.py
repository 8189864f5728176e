"""Unveil: what can be recovered of private data from its InstaHide encodings?

Names load when first used, so that `import unveil` stays light.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from unveil._version import __version__

if TYPE_CHECKING:
    from unveil.attacks import learn_private_image, recover
    from unveil.auditing.audit import audit
    from unveil.auditing.encoder_lint import lint_encoder
    from unveil.auditing.lint import lint_encodings
    from unveil.auditing.plan import Plan, plan
    from unveil.auditing.result import Audit, Finding
    from unveil.checks import InputError
    from unveil.data import read_challenge, read_table
    from unveil.encode import simulate
    from unveil.encodings import Encodings, Selection, Simulation
    from unveil.factor import find_all_florals, find_floral_submatrix, is_floral
    from unveil.gram import gram_extract
    from unveil.records import Floral, Overlaps, Recovery, Scores, Supports
    from unveil.scheme import Scheme
    from unveil.scoring import ChallengeScores, ImageScores, challenge_scores, image_scores, score
    from unveil.supports import learn_public

# Where a name is found when it is first asked for. The imports above are for type checkers, which
# do not run `__getattr__`; a test holds this table against `__all__`.
_HOME = {
    "Audit": "auditing.result",
    "ChallengeScores": "scoring",
    "Encodings": "encodings",
    "Finding": "auditing.result",
    "Floral": "records",
    "ImageScores": "scoring",
    "InputError": "checks",
    "Overlaps": "records",
    "Plan": "auditing.plan",
    "Recovery": "records",
    "Scheme": "scheme",
    "Scores": "records",
    "Selection": "encodings",
    "Simulation": "encodings",
    "Supports": "records",
    "audit": "auditing.audit",
    "challenge_scores": "scoring",
    "find_all_florals": "factor",
    "find_floral_submatrix": "factor",
    "gram_extract": "gram",
    "image_scores": "scoring",
    "is_floral": "factor",
    "learn_private_image": "attacks",
    "learn_public": "supports",
    "lint_encoder": "auditing.encoder_lint",
    "lint_encodings": "auditing.lint",
    "plan": "auditing.plan",
    "read_challenge": "data",
    "read_table": "data",
    "recover": "attacks",
    "score": "scoring",
    "simulate": "encode",
}

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
    "score",
    "simulate",
]


# Silent until somebody listens: Python prints warnings of loggers without any handler.
logging.getLogger("unveil").addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'unveil' has no attribute {name!r}")
    return getattr(import_module(f"unveil.{home}"), name)


def __dir__() -> list[str]:
    return __all__
