"""Small data files of every format, pieces of them, and command lines."""


def _word(number: int, form: str, tag: str, head: int) -> str:
    return f"{number}\t{form}\t_\t{tag}\t{tag}\t_\t{head}\t_\t_\t_\n"


_TREES = (
    "# text\n"
    + _word(1, "the", "DET", 2)
    + _word(2, "dog", "NOUN", 3)
    + _word(3, "barks", "VERB", 0)
    + "\n"
    + _word(1, "cats", "NOUN", 2)
    + "1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
    + _word(2, "sleep", "VERB", 0)
    + "\n"
)
TEXTS = {
    name: text.encode()
    for name, text in {
        "columns": "the DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n\na DT B-NP\ncat NN I-NP\n\n",
        "attributes": "D\tw=the\tt\\:x\nN\tw=dog:0.5\n\nD\tw=a\tt\\:x:2\nN\tw=cat\tlong\n\n",
        "svmhmm": "1 qid:1 1:1 2:0.5\n2 qid:1 3:1\n1 qid:2 1:1\n2 qid:2 3:1 4:1\n",
        "svmlight": "1 1:1\n2 2:1 # a note\n3 3:1\n1 1:2\n2 2:2\n3 3:2\n",
        "sets": "1,2 1:1\n2 2:1\n3 3:1\n1,2 1:2\n2 2:2\n3 3:2\n",
        "conllu": _TREES,
        "links": "0-0 1-2 2?1\n\n0-1\n",
        "template": "# note\nU00:%x[0,0]\nU01:%x[-1,1]/%x[0,0]\nB\nB01:%x[-1,1]\n",
    }.items()
}
FORMATS = ("columns", "attributes", "svmhmm", "svmlight", "conllu")
PIECES = [
    *b"a|B-NP|1|2|0|_|:|\\|qid:1|qid:99999999999999999999|1:1|9999999999:1|2147483648:1|1:1e999|1:nan|,|-1".split(
        b"|"
    ),
    *b"-DOCSTART-|1-2|1.1|%x[0,0]|%x[|%x[9999999999,0]|%x[0,99999]|U|B|0-0|999999999999-1|3?4|\xff|\xc3\xa9".split(
        b"|"
    ),
    *(
        b" ",
        b"\t",
        b"\n",
        b"\n\n",
        b"\r\n",
        b"\r",
        b"#",
        b"\0",
        b"\x1f\x8b",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"x" * 5000,
    ),
]
COMMANDS = [
    *(f"train data -m model --format {form} -q --max-iter 1" for form in ("auto", *FORMATS)),
    "train data -m model -t template -q --max-iter 1",
    "train good -m model -q --max-iter 1 --set order=2",
    "train good -m model -q --max-iter 1 --set C=[]",
    "train good -m model -q --max-iter 1 --loss x",
    "train good -m nowhere/model",
    "train good -m model -C nan",
    "train good -m model --jobs 99999999999999999999 --max-iter 1 -q",
    "train good -m model --seed 99999999999999999999 --max-iter 1 -q",
    "train good -m model --min-count 99999999999999999999 --max-iter 1 -q",
    "train good -m model --time-limit 1e-9 -q",
    "train good -m model --resume --max-iter 1 -q",
    *("tag stored data -q", "tag stored good --margins -q", "tag data data", "tag stored data -o nowhere/x"),
    *(
        "evaluate data",
        "evaluate data good",
        "evaluate good data",
        "evaluate --links data data",
        "evaluate stored good",
    ),
    *(
        "inspect stored",
        "inspect stored -k 99999999999",
        "inspect data",
        "inspect stored --label x",
        "--version",
    ),
    *("compile nothing", "train --help", "demo --plot x", "", "nothing", "evaluate a b c", "train data"),
]
