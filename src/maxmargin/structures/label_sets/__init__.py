"""Sets of labels: which of several labels an example has."""
