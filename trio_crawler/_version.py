"""The version, where the build and the User-Agent can read it without importing anything."""

__version__ = "0.1.0"
"""The version of this package."""
