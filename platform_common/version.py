"""The version of this project (CalVer)."""

VERSION = "2026.11.1"
