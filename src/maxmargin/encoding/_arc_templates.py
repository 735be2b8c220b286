"""Features of the arcs between words, by templates (McDonald, Crammer and Pereira 2005), in compiled code.

A feature is a template with the words and tags that fill it: those of the head and of the modifier, the tags
next to them and between them, with the arc's direction or its length. Its identity is a 64-bit hash
of its template and contents. The odds that two of a million features have the same hash are one in ten
million; if they do, the two merely share a weight.

A sentence is an array of word numbers and one of tag numbers. Node h is word h, or the root for h = 0. It
has index h + REACH in both arrays, and there are REACH pads after the last word.
"""

import numpy as np

from maxmargin.compiling import helper

# Templates that every arc fills once. An arc has one more feature for each distinct tag between its ends.
N_TEMPLATES = 38
# How far from the ends of an arc templates look, and how many pads and roots each sentence needs for that.
REACH = 2
N_AROUND = 2 * REACH + 1
_LEFT, _RIGHT, _FROM_ROOT = 0, 1, 2
MIX, SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_HALF, _TAG, _SHAPE = np.uint64(32), np.uint64(16), np.uint64(8)
EMPTY = np.uint64(0)


@helper
def feature_key(template, first, second):
    """Hash a template and its contents; the result is never zero."""
    key = (first ^ (np.uint64(template) * SPREAD)) * MIX
    key = ((key ^ (key >> _HALF)) + second) * SPREAD
    key = (key ^ (key >> _HALF)) * MIX
    return key ^ (key >> _HALF) | np.uint64(1)


@helper
def _shapes(h, j):
    """Return the direction of the arc from node h to node j, and its direction with its rounded length."""
    direction = _FROM_ROOT if h == 0 else (_LEFT if h > j else _RIGHT)
    length = abs(h - j)
    bucket = length if length <= 5 else (6 if length <= 10 else 7)
    return np.uint64(direction), np.uint64(4 * bucket + direction)


@helper
def arc_keys(words, tags, h, j, seen, keys):
    """Write the keys of the features of the arc from node h to node j; return their number.

    ``seen`` has an entry per tag. It receives the number of this arc for each tag between its ends, so that
    each of these tags is counted once; no entry may have that number before.
    """
    direction, shape = _shapes(h, j)
    _word_keys(words[h + REACH], tags[h + REACH], words[j + REACH], tags[j + REACH], direction, shape, keys)
    _tag_keys(tags, h + REACH, j + REACH, direction, shape, keys[15:])
    _window_keys(words, tags, h + REACH, j + REACH, direction, keys[27:])
    count, arc = N_TEMPLATES, h * tags.shape[0] + j
    pair = (tags[h + REACH] << _TAG) | tags[j + REACH]
    for between in range(min(h, j) + 1, max(h, j)):
        tag = tags[between + REACH]
        if seen[tag] != arc:
            seen[tag] = arc
            keys[count] = feature_key(0, pair, (tag << _SHAPE) | direction)
            count += 1
    return count


@helper
def _word_keys(a, A, b, B, direction, shape, keys):
    """Write the features of the head's word a and tag A, and of the modifier's word b and tag B."""
    pair, pair_of_words = (A << _TAG) | B, (a << _HALF) | b
    first_tag, second_tag = (a << _TAG) | B, (b << _TAG) | A
    keys[0] = feature_key(1, a, shape)
    keys[1] = feature_key(2, A, shape)
    keys[2] = feature_key(3, b, shape)
    keys[3] = feature_key(4, B, shape)
    keys[4] = feature_key(5, pair, shape)
    keys[5] = feature_key(6, first_tag, shape)
    keys[6] = feature_key(7, second_tag, shape)
    keys[7] = feature_key(8, pair_of_words, shape)
    keys[8] = feature_key(9, pair, direction)
    keys[9] = feature_key(10, first_tag, direction)
    keys[10] = feature_key(11, second_tag, direction)
    keys[11] = feature_key(12, pair_of_words, direction)
    keys[12] = feature_key(13, a, (pair << _SHAPE) | direction)
    keys[13] = feature_key(14, b, (pair << _SHAPE) | direction)
    keys[14] = feature_key(15, pair_of_words, (pair << _SHAPE) | direction)


@helper
def _tag_keys(tags, h, j, direction, shape, keys):
    """Write the features of both tags, at h and j, with the tags next to them."""
    pair = (tags[h] << _TAG) | tags[j]
    around = tags[h - 1], tags[h + 1], tags[j - 1], tags[j + 1]
    for c in range(4):
        keys[c] = feature_key(16 + c, pair, (around[c] << _SHAPE) | shape)
        both = (around[c // 2] << _TAG) | around[2 + c % 2]
        keys[4 + c] = feature_key(20 + c, pair, (both << _SHAPE) | direction)
        keys[8 + c] = feature_key(24 + c, pair, (both << _SHAPE) | shape)


@helper
def _window_keys(words, tags, h, j, direction, keys):
    """Write the features of both tags, at h and j, with words and pairs of tags up to two positions away.

    The words before the modifier say much about its role: they may be its prepositions.
    """
    pair, head = (tags[h] << _TAG) | tags[j], (words[h] << _TAG) | tags[j]
    nearby = words[h - 1], words[h + 1], words[j - 1], words[j + 1], words[j - 2]
    for c in range(5):
        keys[c] = feature_key(28 + c, pair, (nearby[c] << _SHAPE) | direction)
    keys[5] = feature_key(33, head, (words[j - 1] << _SHAPE) | direction)
    keys[6] = feature_key(34, head, (words[j - 2] << _SHAPE) | direction)
    for c in range(2):
        node = h if c == 0 else j
        before, after = (tags[node - 2] << _TAG) | tags[node - 1], (tags[node + 1] << _TAG) | tags[node + 2]
        keys[7 + 2 * c] = feature_key(35 + 2 * c, pair, (before << _SHAPE) | direction)
        keys[8 + 2 * c] = feature_key(36 + 2 * c, pair, (after << _SHAPE) | direction)


@helper
def true_keys(words, tags, offsets, heads, seen, keys):
    """Write the keys of all true arcs; return their number."""
    count = 0
    for i in range(offsets.shape[0] - 1):
        first, stop = offsets[i] + N_AROUND * i, offsets[i + 1] + N_AROUND * (i + 1)
        seen[:] = -1
        for j in range(1, offsets[i + 1] - offsets[i] + 1):
            h = heads[offsets[i] + j - 1]
            count += arc_keys(words[first:stop], tags[first:stop], h, j, seen, keys[count:])
    return count


@helper
def known_columns(words, tags, offsets, table, found, seen, keys, start, columns):
    """Write the columns of the known features of all arcs, and where the columns of each arc start."""
    arc = count = 0
    for i in range(offsets.shape[0] - 1):
        first, stop = offsets[i] + N_AROUND * i, offsets[i + 1] + N_AROUND * (i + 1)
        n_words = offsets[i + 1] - offsets[i]
        seen[:] = -1
        for j in range(1, n_words + 1):
            for h in range(n_words + 1):
                start[arc] = count
                arc += 1
                if h != j:
                    n_keys = arc_keys(words[first:stop], tags[first:stop], h, j, seen, keys)
                    count = _look_up(keys[:n_keys], table, found, columns, count)
    start[arc] = count
    return count


@helper
def _look_up(keys, table, found, columns, count):
    """Append the columns of the keys that the table contains to the first ``count``; return the new count."""
    mask = np.uint64(table.shape[0] - 1)
    for c in range(keys.shape[0]):
        slot = (keys[c] >> np.uint64(1)) & mask
        while table[slot] != EMPTY and table[slot] != keys[c]:
            slot = (slot + np.uint64(1)) & mask
        columns[count] = found[slot]
        count += table[slot] != EMPTY
    return count
