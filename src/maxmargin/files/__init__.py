"""Files: models and checkpoints that are safe to read from strangers, data files, and data sets on disk."""
