"""Old paths of modules, which work for one more release, with a warning: in pickles, and in users' imports.

A module that is gone is imported as an empty one, which finds each of its names where it is defined now.
"""

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGE = __name__.rpartition(".")[0]
_GONE = {
    "": """_arguments _probe _spot_check arrays checks corpus decoding display driver formats history
        inference kinds limits loops marginals objective path persistence plotting result resume rows run
        run_state states wording""",
    "compiling": """addresses baseline collection exchange interrupts inventory named_tuples prefetch threads
        trust views""",
    "corpus": "encoding finishing hashing manifest opening reading sequences writing",
    "dask": "changes holding lessons partitions problem rounds",
    "datasets": "_files _images nuclei scene snakes",
    "displays": "_canvas convergence features transitions",
    "encoding": """_arc_names _arc_templates arc_features arcs chunks forbidden graph_features graph_parts
        graphs grids joined joint label_sets links lookup nested numbered objects parts segments sentences
        signs sparse_rows stacking tokens""",
    "estimators": """_base _calibration _chain_weights _confidence _documentation _encoders _errors _examples
        _explaining _explanation _fields _graph_labels _graphs _inspection _kernels _label_readers _label_sets
        _label_structures _marginals _parameters _pickles _problems _readers _saving _scaled _scales _scores
        _sequences _single _sklearn_private _state _support _tables _training chain dependency graph loading
        matching multiclass multilabel segments structured""",
    "formats": """attributes column_features columns conllu detection json_lines links macros
        numbered_features regexps sources svmlight templates wapiti word_features""",
    "inference": """arborescence assignment assignment_margins chow_liu counted counted_segments counted_tree
        cut cut_margins dependency_trees eisner eisner_margins forward_backward k_best k_best_segments margins
        messages projective_means scaled_simplex search second_order second_order_means segment_margins
        segment_means segments simplex softmax spanning_tree_means subsets tree tree_means viterbi""",
    "methods": """_blocks _cache _cost _cuts _first_kappa _gibbs _merging _momentum _plane_pools _planes _pool
        _stretches _walks alone composition""",
    "persistence": "atomic checkpoint container parts plain seals texts version",
    "problems": """_labels anchoring arborescence bare chain contents custom feature_map graph halves kernels
        label_sets layouts maps margins matching moves multiclass oracle oracles problem second_order segments
        subsets wrappers""",
    "problems.maps": """_columns _kernel_products _link_features _products _tables arborescence chain graph
        identity kernelised matching multiclass second_order segments signs""",
    "problems.oracles": """_alternatives _graph_margins _k_best _labelling _margins _means _segment_parts
        _sequence_margins _slack_classes _slack_graph _slack_oracles _transitions anchored arborescence chain
        custom graph matching multiclass second_order segments slack weighted""",
    "product": "matrices",
    "rows": "_access _shared _storage kernel_functions",
    "tagging": "arguments interpreted kernels",
}
# Where to look first, if not in the room of the old name.
_ROOMS = {
    "encoding": ("encoding", "structures"),
    "estimators": ("estimators", "structures"),
    **dict.fromkeys(("inference", "problems", "rows"), ("structures",)),
    **dict.fromkeys(("corpus", "formats", "persistence", "states"), ("files",)),
}
# Names that are gone from modules that are not.
_FORMER = {
    "maxmargin.problems.Arborescence": "maxmargin.problems.Dependency",
    "maxmargin.problems.ArborescenceWeights": "maxmargin.problems.DependencyWeights",
    "maxmargin.estimators.Explanation": "maxmargin.Explanation",
    "maxmargin.estimators.TokenTransformer": "maxmargin.TokenTransformer",
    "maxmargin.estimators.load": "maxmargin.load",
    "maxmargin.estimators.pickle_training_data": "maxmargin.pickle_training_data",
}


class Moved(ModuleType):
    """A module that is gone."""

    def __getattr__(self, name: str) -> object:
        new = name.replace("Arborescence", "Dependency")
        home = None if name.startswith("__") else _home(self.__name__, new)
        if home is None:
            raise _missing(self.__name__, name)
        found = _fetched(f"{self.__name__}.{name}", f"{home}.{new}")
        setattr(self, name, found)
        return found


def former(module: str, name: str) -> object:
    """Return what a module that still exists had under a name; raise AttributeError if there is no such."""
    new = _FORMER.get(f"{module}.{name}")
    if new is None:
        raise _missing(module, name)
    return _fetched(f"{module}.{name}", new)


def _missing(module: str, name: str) -> AttributeError:
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def _fetched(old: str, new: str) -> object:
    """Return what has this name now; warn whoever asked a module for the old one."""
    import warnings

    text = f"{old} is now {new}; the old path will not work in the next release."
    warnings.warn(text, FutureWarning, stacklevel=4 if old in _FORMER else 3)
    home, _, name = new.rpartition(".")
    found: object = getattr(import_module(home), name)
    return found


def _home(old: str, name: str) -> str | None:
    """Return the module that defines now what an old module defined."""
    _, room, *_ = old.split(".")
    stem, rooms = old.rpartition(".")[2], _ROOMS.get(room, (room, "runtime", "solving"))

    def distance(module: str) -> tuple[bool, int, bool]:
        """Return how far a module is from the old one: by its own name, by its room, by what it holds."""
        path = module.split(".")
        return path[-1] != stem, (*rooms, path[0]).index(path[0]), path[-1] != "model"

    found = min(_definitions().get(name, ()), key=distance, default=None)
    return found and f"{_PACKAGE}.{found}"


@cache
def _definitions() -> dict[str, list[str]]:
    """Return the modules that define each name, from their sources: most need not be imported."""
    import re
    from pathlib import Path

    found: dict[str, list[str]] = {}
    folder = Path(__file__).parent
    for file in sorted(folder.rglob("*.py")):
        module = ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for names in re.findall(r"^(?:(?:class|def) (\w+)|(\w+)(?::.*)? = )", file.read_text("utf-8"), re.M):
            found.setdefault("".join(names), []).append(module)
    return found


class Finder:
    """Finds modules that are gone, after all other finders."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        folder, _, stem = name.rpartition(".")
        if not folder.startswith(_PACKAGE):
            return None
        gone = _GONE.get(folder.removeprefix(_PACKAGE).removeprefix("."), "").split()
        return ModuleSpec(name, Finder, is_package=True) if stem in gone else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> Moved:
        return Moved(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """All names are found when they are asked for."""


sys.meta_path.append(Finder)  # type: ignore[arg-type]
