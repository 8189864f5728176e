"""PNG without an image library: grey, colour or palette, 8 bits, the better of two filters.

Pillow is an extra and a report must not need it. Cost: two runs of zlib per image.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray


def png(pixels: NDArray[np.uint8], palette: NDArray[np.uint8] | None = None) -> bytes:
    """(height, width) grey values, or indices into `palette` (colours, 3); or (height, width, 3)
    colours."""
    height, width = pixels.shape[:2]
    kind = 3 if palette is not None else 2 if pixels.ndim == 3 else 0
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    # Differences to the row above (modulo 256, as the format wants them) suit pictures; noise and
    # palettes do better without.
    above = np.diff(rows, axis=0, prepend=np.zeros_like(rows[:1]))
    streams = (np.insert(filtered, 0, code, axis=1) for code, filtered in ((0, rows), (2, above)))
    body = min((zlib.compress(stream.tobytes(), 9) for stream in streams), key=len)
    # Eight bits per channel, no interlacing: what every browser shows.
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))]
    if palette is not None:
        parts.append((b"PLTE", palette.astype(np.uint8).tobytes()))
    parts += [(b"IDAT", body), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def data_uri(image: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
