"""The version, which a build reads without running anything."""

__version__ = "0.1.0"
