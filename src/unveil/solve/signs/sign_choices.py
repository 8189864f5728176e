"""The inner loops of the search for signs: relations that forbid choices, what follows from that,
and trying the rest.

A choice is +1 (hi), −1 (lo) or 0 (open) for every encoding at one pixel. Relation q allows some of
the 16 combinations of its four encodings: one bit each. `solve.signs.sign_search` says what it is
for.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def allowed_choices(quads, signs, hi, lo, p, bound, nothing, out):  # type: ignore[no-untyped-def]
    """out[q]: a bit for each of the 16 choices (bit i set: lo for the i-th encoding) that fulfil
    relation q."""
    for q in range(len(quads)):
        bits = 0
        near = bound
        for i in range(4):
            r = quads[q, i]
            if nothing[r]:
                near += abs(hi[r, p] - lo[r, p])  # it takes hi, and may be lo
        for c in range(16):
            total = 0.0
            for i in range(4):
                r = quads[q, i]
                total += signs[q, i] * (lo[r, p] if c >> i & 1 else hi[r, p])
            if abs(total) <= near:
                bits |= 1 << c
        out[q] = bits


@njit(cache=True, nogil=True)
def _left(quads, allowed, value, q):  # type: ignore[no-untyped-def]
    """Of the choices that relation q has left: the bits that all of them have set, and those that
    any of them has."""
    fixed, bits = 0, 0
    for i in range(4):
        v = value[quads[q, i]]
        if v != 0:
            fixed |= 1 << i
            if v < 0:
                bits |= 1 << i
    every, some = 15, 0
    for c in range(16):
        if allowed[q] >> c & 1 and c & fixed == bits:
            every &= c
            some |= c
    return every, some


@njit(cache=True, nogil=True)
def propagate(  # type: ignore[no-untyped-def]
    quads, start, using, allowed, value, head, trail, size
):
    """Set what is forced by the rows trail[head:size]; the new size, or −1 − size after a
    contradiction."""
    while head < size:
        r = trail[head]
        head += 1
        for t in range(start[r], start[r + 1]):
            q = using[t]
            every, some = _left(quads, allowed, value, q)
            if every & ~some:
                return -1 - size
            for i in range(4):
                u = quads[q, i]
                if value[u] == 0:
                    if every >> i & 1:
                        value[u] = -1
                    elif not some >> i & 1:
                        value[u] = 1
                    else:
                        continue
                    trail[size] = u
                    size += 1
    return size


@njit(cache=True, nogil=True)
def complete_choices(  # type: ignore[no-untyped-def]
    quads, start, using, allowed, value, trail, size, first, steps, stack, tried
):
    """Depth-first search from what is set: size when all rows are, −1 when nothing fits, −2 when
    steps ran out.

    `first` (rows,): the value to try first.
    """
    rows = len(value)
    depth = 0
    taken = 0
    scan = 0
    while True:
        while scan < rows and value[scan] != 0:
            scan += 1
        if scan == rows:
            return size
        taken += 1
        if taken > steps:
            return -2
        # A row next to what is known, if there is one: the next of the trail's relations that is
        # open.
        r = scan
        for at in range(size - 1, max(-1, size - 40), -1):
            found = False
            for t in range(start[trail[at]], start[trail[at] + 1]):
                for i in range(4):
                    u = quads[using[t], i]
                    if value[u] == 0:
                        r, found = u, True
                        break
                if found:
                    break
            if found:
                break
        stack[depth], tried[depth] = size, 0
        value[r] = first[r]
        trail[size] = r
        depth += 1
        new = propagate(quads, start, using, allowed, value, size, trail, size + 1)
        while new < 0:
            # Take back, turn the last choice that has a second value.
            new = -1 - new
            while True:
                depth -= 1
                if depth < 0:
                    return -1
                base = stack[depth]
                top = trail[base]
                for i in range(base, new):
                    value[trail[i]] = 0
                new = base
                if tried[depth] == 0:
                    break
            tried[depth] = 1
            value[top] = -first[top]
            trail[base] = top
            depth += 1
            taken += 1
            if taken > steps:
                return -2
            new = propagate(quads, start, using, allowed, value, base, trail, base + 1)
        size = new
        scan = 0


@njit(cache=True, nogil=True)
def forced_choices(  # type: ignore[no-untyped-def]
    quads, start, using, allowed, nothing, free, begin, value, trail
):
    """Level 0: what is forced once row `begin` is set (−1: none). The number of rows set, −1 if
    nothing fits."""
    rows = len(value)
    size = 0
    for r in range(rows):
        value[r] = 1 if nothing[r] else 0
        if nothing[r]:
            trail[size] = r
            size += 1
    if begin >= 0:
        value[begin] = 1
        trail[size] = begin
        size += 1
    size = propagate(quads, start, using, allowed, value, 0, trail, size)
    if size >= 0 and not free:
        # With a public part relations force choices by themselves: every row is looked at, until
        # nothing changes.
        while size >= 0:
            before = size
            for r in range(rows):
                if value[r] == 0:
                    trail[rows] = r
                    size = _propagate_from(quads, start, using, allowed, value, r, trail, size)
                    if size < 0:
                        break
            if size == before:
                break
    if size < 0:
        return -1
    return size


@njit(cache=True, nogil=True)
def _propagate_from(  # type: ignore[no-untyped-def]
    quads, start, using, allowed, value, r, trail, size
):
    """What the relations of an open row force, and what follows from it."""
    begin = size
    for t in range(start[r], start[r + 1]):
        q = using[t]
        every, some = _left(quads, allowed, value, q)
        if every & ~some:
            return -1 - size
        for i in range(4):
            u = quads[q, i]
            if value[u] == 0 and (every >> i & 1 or not some >> i & 1):
                value[u] = -1 if every >> i & 1 else 1
                trail[size] = u
                size += 1
    return propagate(quads, start, using, allowed, value, begin, trail, size)
