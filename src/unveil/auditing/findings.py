"""What an audit finds besides records: slips that encodings show (`auditing.lint`), those of the
user's own encoder (`auditing.encoder_lint`), and certificates that failed."""

from __future__ import annotations

from unveil.auditing.audit_options import Options
from unveil.auditing.encoder_lint import lint_encoder
from unveil.auditing.inputs import Case
from unveil.auditing.lint import fixed_weights, lint_encodings
from unveil.auditing.result import Finding
from unveil.auditing.trials import Laboratory
from unveil.checks import InputError


def findings(lab: Laboratory, case: Case, options: Options, wrong: int) -> tuple[Finding, ...]:
    """What the encodings show of how they were made, and what the encoder does."""
    n = len(case.data.names)
    public, encodings = case.release.public, lab.encodings(0, case.high)
    chosen = case.release.chosen(0, case.high)
    found: list[Finding] = [*lint_encodings(encodings, chosen=chosen, n_private=n)]
    if options.encoder is not None:
        # What the scheme says of weights is a guess; the encoder itself shows them.
        found.remove(fixed_weights(encodings))
        # Two hundred unit vectors show every slip; more would only take longer.
        try:
            found += lint_encoder(
                options.encoder,
                min(n, 200),
                0 if public is None else min(200, len(public)),
                progress=options.progress,
            )
        except InputError as error:
            found.append(Finding(f"The encoder cannot be looked into: {error}.", "low", ""))
    if wrong:
        found.insert(0, _wrong(wrong))
    return tuple(found)


def _wrong(count: int) -> Finding:
    return Finding(
        f"{count} vectors were called verified by the attack and equal no record.",
        "high",
        "The counts of this audit stand, since the truth was at hand; the attack's own certificate "
        "failed on these data.",
        "Trust no “verified” on data like these where the truth is not known, and report it as a "
        "bug.",
    )
