"""Labels of mixtures: classes by vote, probabilities that respect them, weights that are read
off."""

import numpy as np

from unveil.images.labels import ImageMemberships, lawful_labels, vote, with_labels


def problem(n=20, m=300, k=2, classes=5, seed=0):
    """True weights, labels of the encodings, classes of the images."""
    rng = np.random.default_rng(seed)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :k]
    L = np.zeros((m, n), np.float32)
    np.put_along_axis(L, members, rng.dirichlet(np.full(k, 3.0), m).astype(np.float32), axis=1)
    of = np.zeros((n, classes), np.float32)
    of[np.arange(n), np.arange(n) % classes] = 1
    return L, L @ of, of


def blurred(L, seed=1):
    rng = np.random.default_rng(seed)
    probability = np.clip(0.6 * (L > 0) + 0.2 * rng.random(L.shape), 0, 1).astype(np.float32)
    return ImageMemberships(probability, rng.random(L.shape).astype(np.float32))


def test_the_class_of_every_image_is_that_of_its_encodings():
    L, labels, of = problem()
    np.testing.assert_array_equal(vote(L, labels), of)
    np.testing.assert_array_equal(vote(L + np.float32(0.02), labels), of)
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_array_equal(vote(L[:, order], labels), of[order])


def test_a_class_that_is_everywhere_does_not_win_by_that():
    labels = np.zeros((100, 2), np.float32)
    labels[:, 0] = 0.5
    labels[:20, 1] = 0.5
    weights = np.zeros((100, 1), np.float32)
    weights[:18] = 1
    np.testing.assert_array_equal(vote(weights, labels), [[0, 1]])


def test_an_image_in_no_encoding_has_one_class_all_the_same():
    _, labels, _ = problem()
    assert vote(np.zeros((300, 3), np.float32), labels).sum(axis=1).tolist() == [1, 1, 1]


def test_probabilities_against_the_plain_loop():
    L, labels, of = problem()
    found = blurred(L)
    out = with_labels(found, labels, of, 2)
    expected = np.zeros_like(L, dtype=float)
    weight = found.weight.copy()
    for i in range(len(L)):
        present = np.flatnonzero(labels[i])
        for c in present:
            images = np.flatnonzero(of[:, c])
            part = found.probability[i, images] + 1e-6
            expected[i, images] = np.minimum(part / part.sum() * 2 / len(present), 1)
            if len(present) == 2:
                weight[i, images] = labels[i, c]
    np.testing.assert_allclose(out.probability, expected, atol=1e-6)
    np.testing.assert_array_equal(out.weight, weight)


def test_no_image_of_a_class_the_label_lacks_and_the_true_weight_where_classes_differ():
    L, labels, of = problem()
    out = with_labels(blurred(L), labels, of, 2)
    assert not out.probability[(labels @ of.T) == 0].any()
    two = (labels > 0).sum(axis=1) == 2
    assert 0 < two.mean() < 1
    right = (L > 0) & two[:, None]
    np.testing.assert_allclose(out.weight[right], L[right], atol=1e-6)
    np.testing.assert_allclose(out.probability[two].sum(axis=1), 2, atol=1e-5)
    assert out.probability.max() <= 1


def test_what_is_given_is_left_alone_and_a_class_without_images_is_skipped():
    L, labels, of = problem()
    found = blurred(L)
    before = found.weight.copy()
    none = of.copy()
    none[none[:, 0] > 0] = 0
    out = with_labels(found, labels, none, 2)
    assert not out.probability[:, none.sum(axis=1) == 0].any()
    np.testing.assert_array_equal(found.weight, before)


def released(m=300, seed=3):
    """Labels of two of 20 images of five classes next to public ones; their mean weight is 0.2."""
    _, labels, _ = problem(m=m, seed=seed)
    return labels * np.random.default_rng(seed).uniform(0.3, 0.5, (m, 1)).astype(np.float32)


def test_labels_of_the_law_stay_as_they_are():
    labels = released()
    np.testing.assert_array_equal(lawful_labels(labels, 2, 0.2), labels)


def test_labels_that_sum_to_one_or_are_smoothed_are_brought_to_the_law():
    labels = released()
    one = labels / labels.sum(axis=1, keepdims=True)
    found = lawful_labels(one, 2, 0.2)
    np.testing.assert_allclose(found, 0.4 * one, rtol=1e-4)
    smooth = (0.9 * labels + 0.02 * labels.sum(axis=1, keepdims=True)).astype(np.float32)
    found = lawful_labels(smooth, 2, 0.2)
    np.testing.assert_allclose(found, 0.9 * labels, atol=2e-3)


def test_labels_that_are_no_mixtures_are_not_used():
    labels = released()
    heaviest = np.eye(5, dtype=np.float32)[labels.argmax(axis=1)]
    assert lawful_labels(heaviest, 2, 0.2) is None
    assert lawful_labels(labels.sum(axis=1, keepdims=True), 2, 0.2) is None
    assert lawful_labels(np.random.default_rng(0).random((50, 5), np.float32), 2, 0.2) is None
    assert lawful_labels(np.zeros((50, 5), np.float32), 2, 0.2) is None
