"""The version of this project (CalVer, the spec's release_version)."""

VERSION = "2026.11.1"
