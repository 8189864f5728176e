"""The best move of every pair: against a loop over moves and windows, and on shifted images."""

import numpy as np
import pytest

from unveil.gram.aligned import _starts, align
from unveil.gram.moved_windows import MovedWindows, moved_windows
from unveil.images.prior import image_prior


def drawn(m=5, places=(8, 9), r=4, seed=0):
    """Windows of length one, none like another."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((*places, m, r)).astype(np.float32)
    values /= np.linalg.norm(values, axis=-1, keepdims=True)
    return MovedWindows(values, np.array([1, -1, 1, 1], np.float32)[:r])


def slow(windows, i, j, move, mean):
    mirrored, down, across = (int(part) for part in move)
    height, width = windows.places
    ys, xs = _starts(height), _starts(width)
    turned = windows.values[:, ::-1] * windows.parity if mirrored else windows.values
    total, count = 0.0, 0
    for y in ys:
        for x in xs:
            if 0 <= y + down < height and 0 <= x + across < width:
                a, b = windows.values[y, x, i], turned[y + down, x + across, j]
                # The mean of all windows, as it is of mirror images for them.
                own = b * windows.parity if mirrored else b
                total += (a @ b) ** 2 - a @ mean @ a - own @ mean @ own + np.sum(mean**2)
                count += 1
    return total / np.sqrt(count * len(ys) * len(xs)) if count else -np.inf


@pytest.mark.parametrize("flips", [False, True])
def test_similarity_and_move_against_the_loop(flips):
    windows = drawn()
    found = align(windows, 3, flips)
    assert len(found.moves) == 49 * (1 + flips)
    flat = windows.values.reshape(-1, 4).astype(np.float64)
    mean = flat.T @ flat / len(flat)
    half = {}
    for i in range(5):
        for j in range(5):
            half[i, j] = [slow(windows, i, j, move, mean) for move in found.moves]
    place = {tuple(move): at for at, move in enumerate(found.moves.tolist())}
    for i in range(5):
        for j in range(5):
            if i == j:
                assert found.similarity[i, j] == 0
                continue
            # Of a move and the one turned round, the first is worked out.
            every = []
            for at, (mirrored, down, across) in enumerate(found.moves.tolist()):
                back = place[mirrored, -down, across if mirrored else -across]
                every.append(half[i, j][at] if at <= back else half[j, i][back])
            assert found.similarity[i, j] == pytest.approx(max(every), abs=1e-4)
            assert found.move[i, j] == np.argmax(every)


def test_crops_and_mirror_images_of_one_image_are_told():
    rng = np.random.default_rng(1)
    prior = image_prior((24, 24))
    wide = prior.draw(1, rng).reshape(24, 24)
    places = [(0, 0, 0), (0, 2, 1), (1, 1, 3), (1, 4, 2), (0, 3, 4)]
    cut = [wide[y : y + 20, x : x + 20] for _, y, x in places]
    Y = [
        part[:, ::-1] if mirrored else part
        for part, (mirrored, _, _) in zip(cut, places, strict=True)
    ]
    others = prior.draw(60, rng).reshape(-1, 24, 24)[:, :20, :20]
    Y = np.abs(np.concatenate([np.array(Y), others])).reshape(-1, 400).astype(np.float32)
    found = align(moved_windows(Y, (20, 20)), 4, True)
    for i, a in enumerate(places):
        for j, b in enumerate(places):
            if i != j:
                sign = -1 if a[0] else 1
                want = (a[0] ^ b[0], a[1] - b[1], sign * (a[2] - b[2]))
                assert tuple(found.moves[found.move[i, j]]) == want
    inside = found.similarity[:5, :5][~np.eye(5, dtype=bool)].min()
    assert inside > 2 * found.similarity[5:, 5:].max()
