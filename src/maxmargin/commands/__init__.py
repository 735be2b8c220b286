"""The commands ``maxmargin train``, ``tag``, ``evaluate`` and ``inspect``: from data files to predictions."""
