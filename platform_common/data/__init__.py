"""Data shipped with the project: the target matrix and the profile definitions."""
