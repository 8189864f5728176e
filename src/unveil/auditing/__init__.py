"""The main job: what leaks if these encodings are released? (The functions are `unveil.audit` and
`unveil.plan`.)"""
