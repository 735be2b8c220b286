"""The version of this library, which files and pickles record."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the version of maxmargin; empty if it is not installed."""
    try:
        return version("maxmargin")
    except PackageNotFoundError:
        return ""
