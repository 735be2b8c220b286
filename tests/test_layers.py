"""Imports go downwards only, and importing the package stays light."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import maxmargin
from maxmargin.compiling import kernel_cache, places
from maxmargin.compiling.object_code import Store
from support.imports import later_blocks, tree_of
from support.package_copies import copy_package

ROOT = Path(maxmargin.__file__).parent
# From the lowest to the highest. A module may import those of lower layers and its own. A file of a room of
# structures is in the layer of its name; all other files of rooms, and what rooms share, are "structures".
LAYERS = [
    ["runtime", "evaluation", "_moved"],
    ["files/sealed", "files/container", "files/parts", "files/checkpoint"],
    ["compiling"],
    ["encoding", "structures/encode"],
    ["files"],
    ["structures"],
    ["tagging", "problems"],
    ["methods"],
    ["solving"],
    ["product"],
    ["files/corpus"],
    ["estimators"],
    ["structures/estimator"],
    ["displays", "dask", "crfsuite", "token_transformer"],
    ["__init__"],
    ["cli", "__main__"],
]
ROOMS = ["classes", "custom", "dependency", "graphs", "label_sets", "matchings", "segments", "sequences"]
# The one room that may import another: label sets are labels of the nodes of a graph.
NEIGHBOURS = {"label_sets": {"graphs"}}
APART = "datasets"
MAY_READ_DATASETS = {"cli"}
HEAVY = {"matplotlib", "pandas", "pycrfsuite", "sklearn.datasets", "psutil", "piqp"}
# What marks functions whose compiled code is kept on disk.
COMPILED = {"kernel", "inner_kernel", "helper", "subroutine", "generic", "generic_with_default"}
MODULES = sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.rglob("*.py"))


def part_of(module):
    """The part of the package to which a module belongs, as LAYERS names it."""
    folder, *rest = module.split("/")
    if folder == "structures" and rest[0] in ROOMS:
        own = {"encode": "encode", "arc_names": "encode", "estimator": "estimator"}.get(rest[-1])
        return f"structures/{own}" if own else "structures"
    part = f"{folder}/{rest[0]}" if rest else folder
    return part if any(part in parts for parts in LAYERS) else folder


@cache
def imports(module):
    """The absolute names a module imports: (name, at its top?)."""
    tree = tree_of(ROOT / f"{module}.py")
    later = {id(node) for block in later_blocks(tree) for node in ast.walk(block)}
    found = set()
    for node in ast.walk(tree):
        for name in _names(node, module):
            found.add((name, id(node) not in later))
    return found


def _names(node, module):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    package = ("maxmargin/" + module).split("/")[: -node.level] if node.level else []
    base = ".".join([*package, *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def parts_imported(module):
    """The parts of this package that a module imports anywhere, other than its own."""
    return {part_of(needed) for needed in files_imported(module, anywhere=True)} - {part_of(module)}


def layer(part):
    places = [k for k, parts in enumerate(LAYERS) if part in parts]
    assert len(places) == 1, f"give {part!r} one place in LAYERS"
    return places[0]


def test_imports_go_downwards():
    for module in MODULES:
        if part_of(module) != APART:
            parts = parts_imported(module)
            assert not [part for part in parts - {APART} if layer(part) > layer(part_of(module))], module
            assert APART not in parts or part_of(module) in MAY_READ_DATASETS, module


def room_of(module):
    folder, *rest = module.split("/")
    return rest[0] if folder == "structures" and rest[0] in ROOMS else None


def test_rooms_do_not_import_each_other():
    for module in MODULES:
        own = room_of(module)
        needed = {room_of(each) for each in files_imported(module, anywhere=True)} - {own, None}
        if own is not None:
            assert needed <= NEIGHBOURS.get(own, set()), module
        elif module.startswith("structures/"):
            assert not needed, module


def test_what_estimators_share_knows_no_room():
    for module in MODULES:
        if module.startswith("estimators/"):
            needed = {room_of(each) for each in files_imported(module, anywhere=True)} - {None}
            assert not needed, module


def test_estimators_of_rooms_import_what_is_shared_and_their_own_room():
    shared = ("estimators", "encoding", "solving", "structures", "runtime", "files", "methods", "evaluation")
    for module in MODULES:
        if room_of(module) is not None and module.endswith("/estimator"):
            needed = {each.split("/")[0] for each in files_imported(module, anywhere=True)}
            assert needed <= set(shared), module


def test_rooms_have_few_files():
    for room in ROOMS:
        names = {path.stem for path in (ROOT / "structures" / room).glob("*.py")} - {"__init__"}
        assert {"model", "estimator"} <= names, room
        assert len(names) <= 7, room


def test_the_tree_of_tests_is_that_of_the_package():
    tests = Path(__file__).parent
    rooms = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("__init__.py")}
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}
    assert folders <= rooms | {"fuzz", "benchmarks", "word_alignment"}
    assert rooms - folders <= {"compiling/numba_private"}


def private_names(tree):
    """What a test imports, reads or replaces of modules and begins with an underscore: (room, name)."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("maxmargin."):
            room = node.module.split(".")[1]
            yield from ((room, alias.name) for alias in node.names if alias.name.startswith("_"))
            paths = {(alias.asname or alias.name): f"{node.module}.{alias.name}" for alias in node.names}
            modules |= {name: room for name, path in paths.items() if _module_at(path.replace(".", "/")[10:])}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=used):
                yield modules.get(name), used
            case ast.Call(args=[ast.Name(id=name), ast.Constant(value=str(used)), *_]):
                yield modules.get(name), used


def test_tests_read_private_names_of_their_own_room_only():
    tests = Path(__file__).parent
    for file in tests.rglob("test_*.py"):
        own, names = file.relative_to(tests).parts[0], private_names(tree_of(file))
        others = {(room, name) for room, name in names if room not in (own, None) and name.startswith("_")}
        assert not others, file


def test_cases_share_no_random_generator():
    for file in Path(__file__).parent.rglob("*.py"):
        tree = tree_of(file)
        shared = {ast.unparse(node.targets[0]) for node in tree.body if _makes_generator(node)}
        for each in ast.walk(tree):
            if isinstance(each, ast.FunctionDef | ast.Lambda):
                read = {node.id for node in ast.walk(each) if isinstance(node, ast.Name)}
                local = {node.arg for node in ast.walk(each) if isinstance(node, ast.arg)}
                assert not shared & (read - local), (file, each.lineno)


def _makes_generator(node):
    return isinstance(node, ast.Assign) and bool(
        re.fullmatch(r"np\.random\.default_rng\(\d*\)", ast.unparse(node.value))
    )


def test_models_know_nothing_of_scikit_learn():
    for module in MODULES:
        if part_of(module) in (
            "structures",
            "encoding",
            "structures/encode",
            "compiling",
            "methods",
            "solving",
        ):
            at_top = {name.split(".")[0] for name, is_top in imports(module) if is_top}
            assert "sklearn" not in at_top, module


def test_datasets_and_encoding_stand_alone():
    for module in MODULES:
        if part_of(module) in (APART, "encoding"):
            assert parts_imported(module) <= {"runtime", "compiling", "evaluation", "__init__"}, module


def test_encoding_needs_arrays_only():
    outside = {
        name.split(".")[0]
        for module in MODULES
        if part_of(module) == "encoding"
        for name, is_top in imports(module)
        if is_top
    }
    assert outside - set(sys.stdlib_module_names) <= {"maxmargin", "numpy", "scipy"}


@cache
def files_imported(module, anywhere=False):
    """The modules of this package whose names a module imports, packages as their __init__."""
    found = set()
    for name, at_top in imports(module):
        path = name.split(".")
        if path[0] == "maxmargin" and (at_top or anywhere):
            prefixes = ("/".join(path[1:k]) for k in range(len(path), 1, -1))
            found.add(next((p for p in map(_module_at, prefixes) if p), "__init__"))
    return found - {module}


def _module_at(path):
    return next((m for m in (path, f"{path}/__init__") if m in MODULES), None)


def test_imports_have_no_cycles():
    done, trail = set(), []

    def visit(module):
        assert module not in trail, " -> ".join([*trail, module])
        if module in done:
            return
        trail.append(module)
        for needed in sorted(files_imported(module)):
            visit(needed)
        done.add(trail.pop())

    for module in MODULES:
        visit(module)
    assert done == set(MODULES)


def compiled_from():
    """The files in memory when all functions that are marked to be compiled have been imported."""
    marked = ["tagging/making"]
    for module in MODULES:
        names = {name.rpartition(".")[2] for name, _ in imports(module) if ".compiling" in name}
        marked += [module] if names & COMPILED else []
    loads = "".join(f"import maxmargin.{module.replace('/', '.')}\n" for module in marked)
    program = loads + "import sys\nprint(*(each.__file__ for name, each in sorted(sys.modules.items()) "
    program += "if name.partition('.')[0] == 'maxmargin'), sep='\\n')"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [Path(line).relative_to(ROOT) for line in said.stdout.splitlines()]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    root = tmp_path_factory.mktemp("copy")
    copy_package(root)
    return root / "maxmargin"


def keys():
    """The keys of all compiled code on disk: of kernels, and of object code."""
    return kernel_cache.fingerprint.__wrapped__(), Store("tagger").file


def keys_after_edit(file):
    content = file.read_bytes()
    file.write_bytes(content + b"\n# edited\n")
    try:
        return keys()
    finally:
        file.write_bytes(content)


def test_an_edit_to_any_source_of_compiled_code_changes_all_keys(package, monkeypatch):
    monkeypatch.setattr(places, "ROOT", package)
    before, files = keys(), compiled_from()
    needed = {"compiling/numba_private/pipeline.py", "structures/sequences/inference.py"}
    assert needed <= {file.as_posix() for file in files}
    for file in files:
        after = keys_after_edit(package / file)
        assert not set(before) & set(after), file
    assert keys() == before


def test_new_and_renamed_sources_change_all_keys(package, monkeypatch):
    monkeypatch.setattr(places, "ROOT", package)
    before = keys()
    (package / "structures" / "new.py").touch()
    new = keys()
    (package / "structures" / "new.py").rename(package / "structures" / "newer.py")
    assert all(len({*three}) == 3 for three in zip(before, new, keys(), strict=True))
    (package / "structures" / "newer.py").unlink()


def test_an_edit_to_an_estimator_or_a_command_leaves_compiled_code(package, monkeypatch):
    monkeypatch.setattr(places, "ROOT", package)
    for name in ("structures/sequences/estimator.py", "cli/tag.py", "dask/fleet.py", "cli/__init__.py"):
        assert keys_after_edit(package / name) == keys()


def test_heavy_modules_are_imported_in_functions():
    for module in MODULES:
        at_top = {name for name, is_top in imports(module) if is_top}
        assert not [name for name in at_top for h in HEAVY if name == h or name.startswith(h + ".")], module


def test_import_of_the_package_is_light():
    # scikit-learn itself imports pandas where it is installed: what counts is what comes on top.
    before = "import sys, sklearn.base; before = set(sys.modules)"
    program = before + "; from maxmargin import *; print(*set(sys.modules) - before)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(said.stdout.split())
    assert "maxmargin.structures.sequences.estimator" in loaded
    heavy = {"pandas", "matplotlib", "pycrfsuite", "piqp", "dask", "maxmargin.cli.warm", "maxmargin.datasets"}
    assert not loaded & heavy


def registered_names():
    """The names of all functions that are registered as implementations of generic functions, by module."""
    for module in MODULES:
        for node in ast.walk(tree_of(ROOT / f"{module}.py")):
            if isinstance(node, ast.FunctionDef) and any(map(_registers, node.decorator_list)):
                yield module, node.name


def _registers(decorator):
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(function, ast.Attribute) and function.attr == "register"


def test_every_registered_implementation_has_a_name_of_its_own():
    # So that tracebacks, profilers and grep can tell them apart.
    places = defaultdict(list)
    for module, name in registered_names():
        places[name].append(module)
    assert len(places) > 400
    assert {name: modules for name, modules in places.items() if len(modules) > 1 or name[0] == "_"} == {}


def test_few_types_are_left_open():
    # Where a type can be said it is: a Protocol, a TypeVar, `object`.
    counts = {module: len(re.findall(r"\bAny\b", (ROOT / f"{module}.py").read_text())) for module in MODULES}
    assert sum(counts.values()) <= 300, sorted(counts.items(), key=lambda item: -item[1])[:10]


def test_paths_in_texts_lead_somewhere():
    for module in set(MODULES) - {"_moved"}:
        for path in re.findall(r"\bmaxmargin((?:\.\w+)+)", (ROOT / f"{module}.py").read_text()):
            _, *names = path.split(".")
            k = next((k for k in range(len(names), 0, -1) if _module_at("/".join(names[:k]))), 0)
            home = import_module(".".join(["maxmargin", *names[:k]]))
            is_setting = path == ".timeout"  # of Dask
            assert is_setting or k == len(names) or hasattr(home, names[k]), (module, path)
