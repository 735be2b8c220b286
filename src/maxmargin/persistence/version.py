"""The version of this library, which files and pickles tell."""

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the version of maxmargin; nothing, if it is not installed."""
    try:
        return version("maxmargin")
    except PackageNotFoundError:
        return ""
