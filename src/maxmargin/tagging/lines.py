"""From the features of tokens, as lines of attributes or as names, to labels.

All functions take only arrays and numbers, so that they can run without Numba once they are compiled.
"""

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import add_scaled, clear, copy, prefetch
from maxmargin.encoding.table import (
    END_OF_NAME,
    HASH,
    LENGTH,
    ONE,
    START,
    hash_of,
    number_at,
    prefetch_name,
    prefetch_slot,
    slot_of,
    write_slot,
)
from maxmargin.structures.sequences.inference import viterbi
from maxmargin.tagging.loops import (
    DONE,
    END_OF_SEQUENCE,
    LINES,
    LONG_LINE,
    LONG_SEQUENCE,
    NEXT,
    ODD,
    PLACE,
    SEQUENCES,
)

_NUMBER = 3  # the place of the number of a feature in what is known of its name
# A feature of a token: its number, above its place among the fields of the token.
_PLACE_BITS = 20
_PLACES = (1 << _PLACE_BITS) - 1
_TAB, _NEWLINE, _COLON, _AT, _BACKSLASH = 9, 10, 58, 64, 92
_FEW = 64
_LAST_MARK = 1  # the reader of attributes uses the characters 0 and 1 as marks


@helper
def index_features(names, counts, columns, values, n_labels, batch, slots, rows):
    """Fill the hash table of names, and find where the weights of each feature begin.

    Features without weights are left out: they do not change a prediction. Returns `DONE`, or `ODD` unless
    there are as many names as features, those with weights distinct, and each feature has finite weights of
    different labels, in their order.

    Parameters
    ----------
    names : uint8 array
        The names of features in UTF-8, each followed by `END_OF_NAME`.
    counts : uint8 array
        The number of weights of each feature.
    columns, values : uint8 and float64 arrays
        The labels of weights, and the weights, of one feature after another.
    n_labels : int
    batch : int64 array of shape (some, 4)
        Workspace for what is known of some names, and their numbers.
    slots : uint64 array
        Zero; the slots of `maxmargin.encoding.table`, of which more than half stay empty.
    rows : int64 array
        Receives where the weights of each feature begin, and where the last ones end.
    """
    place = n = 0
    while place < names.shape[0]:
        filled = 0
        while place < names.shape[0] and filled < batch.shape[0]:
            if n == counts.shape[0]:
                return ODD
            filled += _find_name(names, place, counts[n], n, slots, batch[filled])
            place = _name_end(names, place) + 1
            n += 1
        for k in range(filled):
            slot = slot_of(names, batch[k], names, slots)
            if number_at(slots, slot) >= 0:
                return ODD
            write_slot(slots, slot, batch[k, HASH], batch[k, _NUMBER], batch[k, START])
    if n != counts.shape[0]:
        return ODD
    return _find_rows(counts, columns, values, n_labels, rows)


@helper
def _find_name(names, start, count, number, slots, entry):
    """Write what is known of a name to ``entry`` if its feature has weights, and return whether it has."""
    if count == 0:
        return 0
    length = _name_end(names, start) - start
    upper = hash_of(names, start, length)
    entry[START], entry[LENGTH], entry[HASH], entry[_NUMBER] = start, length, upper, number
    prefetch_slot(slots, upper)
    return 1


@helper
def _name_end(names, start):
    """Return where a name ends."""
    place = np.uint64(start)
    while names[place] != END_OF_NAME:
        place += ONE
    return np.int64(place)


@helper
def _find_rows(counts, columns, values, n_labels, rows):
    """Write where the weights of each feature begin; check that labels are in order and weights finite."""
    total = np.int64(0)
    for f in range(counts.shape[0]):
        rows[f] = total
        stop = total + np.int64(counts[f])
        if stop > values.shape[0]:
            return ODD
        before = np.int64(-1)
        for p in range(total, stop):
            column = np.int64(columns[p])
            if column <= before or column >= n_labels or values[p] - values[p] != 0.0:
                return ODD
            before = column
        total = stop
    rows[counts.shape[0]] = total
    return DONE if total == values.shape[0] else ODD


@helper
def tag_text(
    text, names, slots, rows, columns, values, chain, line, fields, numbers, unary, value, path, out, scan
):
    """Write the labels of the sequences of a text, from where the scan stands.

    Returns `DONE`; `LONG_LINE` or `LONG_SEQUENCE` if workspace is too short for the next sequence; or `ODD`
    if the estimator has to read the text.

    Parameters
    ----------
    text : uint8 array
        Lines in UTF-8, each with ``\\n``: the label and the attributes of a token, or nothing after a
        sequence.
    names, slots, rows, columns, values : arrays
        What `index_features` was given, and what it made.
    chain : float64 array of shape (n_labels + 2, width)
        The weights of pairs of labels, of the first label and of the last one.
    line : uint8 array
        Workspace for the attributes of a token.
    fields : int64 array of shape (some, 3)
        Workspace for what is known of each attribute.
    numbers : int64 array of shape (2, some), as long as ``fields``, of at most `_PLACES` entries
        Workspace for the numbers and the places of features.
    unary, value : float64 arrays of shape (some, width)
        Workspace for the scores of the tokens of a sequence, and of labellings.
    path : int64 array, as long as ``unary``
        Workspace for a labelling.
    out : int32 array, with an entry for each line of the text and one more
        Receives labels, and `END_OF_SEQUENCE` after each sequence.
    scan : int64 array of 4
        Where the scan stands.
    """
    n_labels = chain.shape[0] - 2
    while scan[PLACE] < text.shape[0]:
        length = _read_sequence(text, names, slots, rows, columns, values, line, fields, numbers, unary, scan)
        if length < 0:
            return length
        if length > 0:
            _decode(length, chain, n_labels, unary, value, path)
            _write(path, length, out, scan)
        scan[PLACE] = scan[NEXT]
    return DONE


@helper
def tag_names(
    text, end, counts, lengths, factors,
    names, slots, rows, columns, values, chain, fields, numbers, unary, value, path, out
):  # fmt: skip
    """Write the labels of sequences whose tokens are given by the names of their features; return `DONE`.

    Parameters
    ----------
    text : uint8 array
        All names in UTF-8, each with a byte after it that no name contains.
    end : int
        That byte.
    counts, lengths : int64 arrays
        How many names each token has, and how many tokens each sequence.
    factors : float64 array
        The value of each feature; or an empty array if all are one.
    names, slots, rows, columns, values, chain : arrays
        As `tag_text` takes them.
    fields, numbers, unary, value, path : arrays
        The same, with room for the longest token and the longest sequence.
    out : int32 array
        Receives the label of each token.
    """
    n_labels, mark = chain.shape[0] - 2, np.uint8(end)
    place = first = done = 0
    for i in range(lengths.shape[0]):
        length = lengths[i]
        for t in range(length):
            n = counts[done + t]
            place = _find_names(text, place, mark, n, slots, fields)
            count = _look_up(text, fields, n, names, slots, rows, numbers)
            own = factors[first : first + n] if factors.shape[0] > 0 else factors
            _add_weights(numbers[0], count, own, rows, columns, values, unary[t])
            first += n
        if length > 0:
            _decode(length, chain, n_labels, unary, value, path)
            for t in range(length):
                out[done + t] = path[t]
            done += length
    return DONE


@helper
def _find_names(text, place, mark, n, slots, fields):
    """Write what is known of the next n names to ``fields``, and return the place after them."""
    p = np.uint64(place)
    for k in range(n):
        start = np.int64(p)
        while text[p] != mark:
            p += ONE
        length = np.int64(p) - start
        fields[k, START], fields[k, LENGTH], fields[k, HASH] = start, length, hash_of(text, start, length)
        prefetch_slot(slots, fields[k, HASH])
        p += ONE
    return np.int64(p)


@helper
def _decode(length, chain, n_labels, unary, value, path):
    """Write the best labelling of a sequence, given the scores of its tokens, to ``path``."""
    add_scaled(1.0, chain[n_labels], unary[0])
    add_scaled(1.0, chain[n_labels + 1], unary[length - 1])
    viterbi(unary[:length], chain[:n_labels], n_labels, value, path)


@helper
def _write(path, length, out, scan):
    """Write the labels of a sequence, and its end."""
    first = scan[LINES]
    for t in range(length):
        out[first + t] = path[t]
    out[first + length] = END_OF_SEQUENCE
    scan[LINES] += length + 1
    scan[SEQUENCES] += 1


@helper
def _read_sequence(text, names, slots, rows, columns, values, line, fields, numbers, unary, scan):
    """Write the scores of the next sequence to ``unary``, and return its length, or what is wrong."""
    place, length = scan[PLACE], 0
    while place < text.shape[0] and text[place] != _NEWLINE:
        if length == unary.shape[0]:
            return LONG_SEQUENCE
        place, n = _read_line(text, place, slots, line, fields)
        if n < 0:
            return n
        count = _look_up(line, fields, n, names, slots, rows, numbers)
        _add_weights(numbers[0], count, unary[0, :0], rows, columns, values, unary[length])
        length += 1
    scan[NEXT] = place + 1 if place < text.shape[0] else place
    return length


@helper
def _read_line(text, place, slots, line, fields):
    """Find the attributes of a token; return the start of the next line and their number, or a fault."""
    if text[place] == _AT:
        return place, ODD
    while text[place] != _TAB and text[place] != _NEWLINE:
        if text[place] <= _LAST_MARK:
            return place, ODD
        place += 1
    n, used = 0, 0
    while text[place] == _TAB:
        if n == fields.shape[0]:
            return place, LONG_LINE
        place = _read_field(text, place + 1, line, used, fields[n])
        if place < 0:
            return place, place
        prefetch_slot(slots, fields[n, HASH])
        used += fields[n, LENGTH]
        n += fields[n, LENGTH] > 0
    return place + 1, n


@helper
def _read_field(text, place, line, used, field):
    """Copy a field to ``line``, without escapes; return the place after it, `LONG_LINE` or `ODD`."""
    # Unsigned, so that the compiler does not look for negative indices at every byte.
    at, p, room = np.uint64(used), np.uint64(place), np.uint64(line.shape[0])
    while at < room:
        byte = text[p]
        if byte <= _NEWLINE or byte in (_COLON, _BACKSLASH):
            if byte in (_TAB, _NEWLINE):
                length = np.int64(at) - used
                field[START], field[LENGTH], field[HASH] = used, length, hash_of(line, used, length)
                return np.int64(p)
            if byte == _COLON or byte <= _LAST_MARK:
                return ODD
            if byte == _BACKSLASH and text[p + ONE] in (_COLON, _BACKSLASH):
                p += ONE
                byte = text[p]
        line[at] = byte
        at += ONE
        p += ONE
    return LONG_LINE


@helper
def _look_up(line, fields, n, names, slots, rows, numbers):
    """Write the fields that are features to ``numbers[0]``, in order; return how many they are."""
    for k in range(n):
        prefetch_name(names, slots, fields[k, HASH])
    count = 0
    for k in range(n):
        number = number_at(slots, slot_of(line, fields[k], names, slots))
        if number >= 0:
            prefetch(rows, number, number + 1)
            numbers[1, count] = (number << _PLACE_BITS) | k
            count += 1
    if count <= _FEW:
        _sort_few(numbers[1], count, numbers[0])
    else:
        copy(numbers[1, :count], numbers[0, :count])
        _sort(numbers[0], count)
    return count


@helper
def _sort_few(numbers, count, out):
    """Sort up to `_FEW` distinct numbers by counting those before each: more comparisons, but no branches."""
    for k in range(count):
        number, place = numbers[k], 0
        for j in range(count):
            place += numbers[j] < number
        out[place] = number


@helper
def _sort(numbers, count):
    """Sort the first numbers (Shell's method)."""
    gap = 1
    while gap < count // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, count):
            number, p = numbers[k], k
            while p >= gap and numbers[p - gap] > number:
                numbers[p] = numbers[p - gap]
                p -= gap
            numbers[p] = number
        gap //= 3


@helper
def _add_weights(numbers, count, factors, rows, columns, values, out):
    """Write the sums of the weights of features, in their order, times the sum of the values of each.

    Without factors, a feature that occurs n times counts n times.
    """
    for k in range(count):
        first = rows[numbers[k] >> _PLACE_BITS]
        prefetch(values, first, first + 1)
        prefetch(columns, first, first + 1)
    clear(out)
    k = 0
    while k < count:
        number, factor = numbers[k] >> _PLACE_BITS, 0.0
        while k < count and numbers[k] >> _PLACE_BITS == number:
            factor += factors[numbers[k] & _PLACES] if factors.shape[0] > 0 else 1.0
            k += 1
        for p in range(rows[number], rows[number + 1]):
            out[columns[p]] += factor * values[p]
