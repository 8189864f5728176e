"""May encodings of these records be released? `unveil.audit`, `unveil.plan` and the lint.

attacker    what somebody knows besides the encodings, and which attacks follow from it
trial       one draw of the encodings, one attacker, held against the truth
audit       all trials, and the verdict

outcome     what "back" means, value by value; nobody else says it
release     where encodings come from
verdict     counts, intervals, headline
"""
