"""Data sets on disk: files of sequences become a directory of arrays, which are mapped into memory."""
