"""The digest of a file is that of `sha256sum`; of a folder, one that every change changes."""

import hashlib

from unveil.data.digest import digest


def test_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    assert digest(tmp_path / "a") == hashlib.sha256(b"x" * 3_000_000).hexdigest()


def test_a_folder_by_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    seen = {digest(tmp_path)}
    (tmp_path / "b").write_text("3")
    seen.add(digest(tmp_path))
    (tmp_path / "b").rename(tmp_path / "c")
    seen.add(digest(tmp_path))
    assert len(seen) == 3
