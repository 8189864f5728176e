"""Attacks by others, as published: their algorithms, frozen, on our building blocks."""
