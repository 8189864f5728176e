"""Results as people want them: tables, JSON, files, pictures, and what a notebook shows.

Nothing is computed here. Records call these functions by name (`unveil.rooms`).
"""
