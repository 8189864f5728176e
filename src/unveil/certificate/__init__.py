"""Which claimed vectors are private vectors? The only room that says "verified".

    certify.py      the public function, and the table of doubts in the order of decision
    claim.py        re-encodes every row at every value; what columns say against chance
    design.py       which memberships no other reading can have: a theorem about W alone
    few_records.py  the same for few records, by going through all columns a reading can have
    columns.py      which values are determined once memberships are known, column by column
    public_part.py  what the list of public vectors leaves open; encodings of public vectors alone
    mixtures.py     encodings of public vectors alone
    own_weights.py  weights drawn anew for every encoding

Nothing here imports a solver or an attack. Theorems and proofs: docs/certificate.md.
"""

from unveil.certificate.certify import DOUBTS, certify

__all__ = ["DOUBTS", "certify"]
