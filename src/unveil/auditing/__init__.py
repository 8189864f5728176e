"""The main job: what leaks if these encodings are released? (The function is `unveil.audit`.)"""
