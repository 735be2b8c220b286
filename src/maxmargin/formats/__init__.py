"""Data files: column files with feature templates, crfsuite's attributes, svmlight, CoNLL-U and alignments.

Every reader streams and reports faults as ``file:line: expected ..., got ...``.
"""
