"""The order of the examples in the gallery: tasks first, then what one can build, then products of sets."""

_ORDER = [
    "chunking",
    "plot_words",
    "plot_phrases",
    "plot_alignment",
    "plot_parsing",
    "plot_nuclei",
    "plot_snakes",
    "plot_scene",
    "plot_kernels",
    "plot_own_oracle",
    "own_problem",
    "own_model",
    "own_method",
    "plot_matrix_completion",
    "plot_product",
]


class ByTask:
    """A sort key; examples that are not listed come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        stem = name.removesuffix(".py")
        return (_ORDER.index(stem) if stem in _ORDER else len(_ORDER)), stem

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.folder!r})"
