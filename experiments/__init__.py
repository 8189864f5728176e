"""What the paper reports, measured again (`reproduce`), and every attack on every family of
instances (`compare`). Not part of the wheel."""
