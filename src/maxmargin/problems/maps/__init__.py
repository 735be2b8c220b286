"""Feature maps, each in one file."""
