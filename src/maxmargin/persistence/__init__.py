"""Files that are safe to read from strangers: arrays and plain data, checked before they are used."""
