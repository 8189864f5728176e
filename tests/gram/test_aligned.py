"""The best move of every pair: against a loop over moves and pixels, and on shifted images."""

import numpy as np
import pytest

from unveil.gram.aligned import align


def slow(a, b, move):
    mirrored, down, across = move
    b = b[:, ::-1] if mirrored else b
    height, width = a.shape[:2]
    pairs = [
        (a[y, x], b[y + down, x + across])
        for y in range(height)
        for x in range(width)
        if 0 <= y + down < height and 0 <= x + across < width
    ]
    one, other = (np.concatenate(part) for part in zip(*pairs, strict=True))
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    return cosine * np.sqrt(len(pairs) / (height * width))


@pytest.mark.parametrize("flips", [False, True])
def test_similarity_and_move_against_the_loop(flips):
    Z = np.random.default_rng(0).standard_normal((4, 5, 4, 2)).astype(np.float32)
    found = align(Z, 2, flips)
    assert len(found.moves) == 25 * (1 + flips)
    for i in range(4):
        for j in range(4):
            if i == j:
                assert found.similarity[i, j] == 0
                continue
            every = [slow(Z[i], Z[j], move) for move in found.moves]
            assert found.similarity[i, j] == pytest.approx(max(every), abs=1e-5)
            assert found.move[i, j] == np.argmax(every)


def test_shifts_of_one_image_are_told():
    rng = np.random.default_rng(1)
    wide = rng.standard_normal((12, 12, 1)).astype(np.float32)
    places = [(0, 0), (2, 1), (1, 3), (4, 2)]
    Z = np.stack([wide[y : y + 8, x : x + 8] for y, x in places])
    found = align(Z, 4, False)
    for i, a in enumerate(places):
        for j, b in enumerate(places):
            if i != j:
                _, down, across = found.moves[found.move[i, j]]
                assert (down, across) == (a[0] - b[0], a[1] - b[1])
