"""An encoder from a file: what it prints, while it is loaded or while it runs, is not on stdout."""

from unveil.cli.encoder import load_encoder


def test_what_an_encoder_prints_goes_to_stderr(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        "print('loaded')\n\n\ndef encode(private, public, rng):\n"
        "    print('called')\n    return private\n"
    )
    assert load_encoder(f"{file}:encode")(3, None, None) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.split() == ["loaded", "called"]
