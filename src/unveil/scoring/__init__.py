"""Holding recovered vectors against the truth."""

from unveil.scoring.images import ChallengeScores, ImageScores, challenge_scores, image_scores
from unveil.scoring.score import score

__all__ = ["ChallengeScores", "ImageScores", "challenge_scores", "image_scores", "score"]
