"""Data sets on disk: files of sequences become a directory of arrays, which are mapped into memory."""

from maxmargin.corpus.encoding import encode_files
from maxmargin.corpus.opening import Corpus, open_corpus
from maxmargin.corpus.sequences import CorpusLabels, CorpusSequences

__all__ = ["Corpus", "CorpusLabels", "CorpusSequences", "encode_files", "open_corpus"]
