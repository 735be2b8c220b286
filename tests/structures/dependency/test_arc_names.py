"""The names of the features of arcs say what is true of these arcs."""

import numpy as np

from maxmargin.structures.dependency.encode import ArcEncoder, encode_tagged

SENTENCES = [
    [("the", "DET"), ("old", "ADJ"), ("dog", "NOUN"), ("barks", "VERB"), ("at", "ADP"), ("cats", "NOUN")],
    [
        ("cats", "NOUN"),
        ("sleep", "VERB"),
        ("when", "ADV"),
        ("the", "DET"),
        ("dog", "NOUN"),
        ("barks", "VERB"),
    ],
]
HEADS = [3, 3, 4, 0, 4, 5, 2, 0, 6, 5, 6, 2]


def statement_holds(statement, sentence, head, modifier):
    """Whether what a name says, such as "tag before head=DET" or "left", is true of an arc."""
    if "=" not in statement:
        length = abs(head - modifier)
        direction = "from the root" if head == 0 else "left" if head > modifier else "right"
        return statement in (direction, f"distance {length}", "distance 6 to 10" if length > 5 else "")
    name, text = statement.split("=")
    column, nodes = int("tag" in name), [("<root>", "<root>"), *sentence]
    if name == "tag between":
        return text in [tag for _, tag in nodes[min(head, modifier) + 1 : max(head, modifier)]]
    place = head if name.startswith("head") or name.endswith("head") else modifier
    shift = 2 if "two" in name else 1
    place += -shift if "before" in name else shift if "after" in name else 0
    return text == (nodes[place][column] if 0 <= place < len(nodes) else "<none>")


def test_names_are_true_of_the_arcs_that_have_them():
    tagged = encode_tagged(SENTENCES)
    encoder = ArcEncoder().fit(tagged, np.array(HEADS))
    names = encoder.names().of(range(encoder.n_features_in_))
    assert len(set(names)) == len(names)
    rows, arc = encoder.transform(tagged).features, 0
    seen = set()
    for i, sentence in enumerate(SENTENCES):
        for modifier in range(1, len(sentence) + 1):
            for head in range(len(sentence) + 1):
                columns = rows.columns[rows.start[arc] : rows.start[arc + 1]]
                arc += 1
                for name in (names[column] for column in columns):
                    seen.add(name)
                    assert all(statement_holds(s, sentence, head, modifier) for s in name.split(", ")), name
                if head == HEADS[6 * i + modifier - 1]:  # a true arc has all of its features
                    between = {tag for _, tag in sentence[min(head, modifier) : max(head, modifier) - 1]}
                    assert len(columns) == 38 + len(between)
    assert seen == set(names)


def test_names_of_a_sentence_are_those_of_its_arcs():
    tagged = encode_tagged(SENTENCES)
    encoder = ArcEncoder().fit(tagged, np.array(HEADS))
    names = encoder.names()
    assert len(names) == encoder.n_features_in_
    others = [[("dog", "NOUN"), ("runs", "VERB"), ("the", "DET"), ("old", "ADJ")], [("one", "NUM")]]
    for sentence in (*SENTENCES, *others):
        alone = encode_tagged([sentence])
        columns = sorted(set(encoder.transform(alone).features.columns.tolist()))
        found = encoder.sentence_names(alone)
        assert sorted(found) == columns
        assert [found[column] for column in columns] == names.of(columns)
    assert names[3] == names.of([2, 3])[1]
