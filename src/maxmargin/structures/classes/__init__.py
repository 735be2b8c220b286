"""Classes: one of several labels for each example."""
