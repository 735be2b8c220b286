"""Kernels compiled beforehand: for which processors they are used, from where, and when not."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from maxmargin.cli import warm
from maxmargin.compiling import kernel_cache
from maxmargin.compiling import places as baseline
from maxmargin.compiling.object_code import ObjectCode, Store
from support.package_copies import MEASURED, WARNED, copy_package, measured, run

FEATURES = (
    "+64bit,+avx,+avx2,-avx512f,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,"
    "+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave"
)
X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"


def test_the_baseline_is_within_processors_that_have_all_of_it():
    assert baseline.baseline_for((X86, "haswell", FEATURES)) == (X86, "x86-64-v3", "")
    assert baseline.baseline_for((X86, "znver5", FEATURES.replace("-avx512f", "+avx512f"))) is not None


@pytest.mark.parametrize("feature", [each for each in FEATURES.split(",") if each.startswith("+")])
def test_a_processor_without_one_of_the_features_compiles(feature):
    assert baseline.baseline_for((X86, "old", FEATURES.replace(feature, "-" + feature[1:], 1))) is None


def test_other_architectures_have_what_all_their_processors_have():
    assert baseline.baseline_for((ARM, "apple-m4", "+neon")) == (ARM, "generic", "")


@pytest.mark.parametrize("unknown", [None, (X86, FEATURES), (X86, "haswell", None), "x86"])
def test_what_cannot_be_understood_compiles(unknown):
    assert baseline.baseline_for(unknown) is None


def test_the_loader_of_the_system_agrees_on_this_processor():
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    if platform.machine() != "x86_64" or not loader.exists():
        pytest.skip("needs glibc on x86-64")
    said = subprocess.run([str(loader), "--help"], capture_output=True, text=True).stdout
    if "x86-64-v3" not in said:
        pytest.skip("needs glibc 2.33")
    supported = re.search(r"x86-64-v3 \(supported", said) is not None
    assert (baseline.baseline_for(baseline.host()) is not None) is supported


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Return a package's kernels and a shared directory, with one file each."""
    for name in ("shipped", "shared"):
        (tmp_path / name / "kernels-0").mkdir(parents=True)
        (tmp_path / name / "kernels-0" / "code").write_text(name)
    monkeypatch.setattr(baseline, "_SHIPPED", tmp_path / "shipped")
    monkeypatch.delenv(baseline.VARIABLE, raising=False)
    return tmp_path


def test_the_variable_chooses_the_directory(places, monkeypatch):
    assert baseline.read_baseline("kernels-0/code") == b"shipped"
    assert baseline.read_baseline("kernels-1/code") is None
    monkeypatch.setenv(baseline.VARIABLE, str(places / "shared"))
    assert baseline.read_baseline("kernels-0/code") == b"shared"
    monkeypatch.setenv(baseline.VARIABLE, "")
    assert baseline.read_baseline("kernels-0/code") is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_a_shared_directory_that_others_can_write_is_not_read(places, monkeypatch):
    monkeypatch.setenv(baseline.VARIABLE, str(places / "shared"))
    (places / "shared" / "kernels-0").chmod(0o777)
    assert baseline.read_baseline("kernels-0/code") is None


def test_what_is_there_is_known(places, monkeypatch):
    monkeypatch.setattr(baseline, "host", lambda: (X86, "haswell", FEATURES))
    assert baseline.has_baseline("kernels-0")
    assert not baseline.has_baseline("kernels-1")
    monkeypatch.setattr(baseline, "host", lambda: (X86, "old", "+sse2"))
    assert not baseline.has_baseline("kernels-0")
    monkeypatch.setattr(baseline, "host", lambda: (ARM, "apple-m4", ""))
    assert baseline.has_baseline("kernels-0")
    monkeypatch.setenv(baseline.VARIABLE, "")
    assert not baseline.has_baseline("kernels-0")


@pytest.mark.parametrize("kept", [None, "empty", "full"])
def test_the_cache_or_the_baseline_has_kernels(kept, monkeypatch, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "code").touch()
    monkeypatch.setattr(kernel_cache, "cache_directory", lambda: kept and tmp_path / kept)
    for has in (True, False):
        monkeypatch.setattr(baseline, "has_baseline", lambda directory, has=has: has)
        assert kernel_cache.has_kernels() is (has or kept == "full")


# A child that keeps its settings as if they were code, in the place where it would keep code.
CHILD = """
import json, os, pathlib, sys
folder = pathlib.Path(os.environ["NUMBA_CACHE_DIR"], "maxmargin", "kernels-0")
folder.mkdir(parents=True, exist_ok=True)
for fit in json.load(sys.stdin):
    said = {name: os.environ[name] for name in os.environ if name.startswith(("NUMBA_C", "MAXMARGIN_K"))}
    (folder / fit[0]).write_text(json.dumps(said))
    print(json.dumps([2, 100.0]))
"""


def test_kernels_are_compiled_for_the_baseline_and_copied(monkeypatch, tmp_path):
    monkeypatch.setattr(warm, "CHILD", CHILD)
    monkeypatch.setattr(baseline, "host", lambda: (ARM, "apple-m4", ""))
    place = tmp_path / "a" / "kernels"
    warm.compile_baseline(place, ["MulticlassSVC"], n_jobs=1, progress=False)
    made = warm.compile_baseline(place, ["MatchingSVC"], n_jobs=1, progress=False)
    assert (made.kernels, made.directory, made.megabytes) == (2, place, 100.0)
    files = sorted(file.relative_to(place).as_posix() for file in place.rglob("*SVC"))
    assert files == ["kernels-0/MatchingSVC", "kernels-0/MulticlassSVC"]
    said = (place / files[0]).read_text()
    assert f'"NUMBA_CPU_NAME": "{baseline.baseline_settings()["NUMBA_CPU_NAME"]}"' in said
    assert '"NUMBA_CPU_FEATURES": ""' in said
    assert '"MAXMARGIN_KERNELS": ""' in said


def test_a_processor_that_cannot_run_the_baseline_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(baseline, "host", lambda: (X86, "old", "+sse2"))
    with pytest.raises(ValueError, match=r"the processor must run code for .*, got old; use another machine"):
        warm.compile_baseline(tmp_path)


def test_loops_of_taggers_are_found_too(places, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(places / "made"))
    monkeypatch.setattr(baseline, "host", lambda: (X86, "x86-64-v3", ""))
    code = ObjectCode({"f": "g"}, [b"code"])
    Store("some").write(code)
    ((file,),) = [list(path.iterdir()) for path in (places / "made").iterdir()]
    shutil.copy(file, places / "shipped")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(places / "empty"))
    for features, found in ((FEATURES, code), ("+sse2", None)):
        monkeypatch.setattr(baseline, "host", lambda features=features: (X86, "haswell", features))
        assert Store("some").read() == found


@pytest.mark.parametrize(
    ("name", "features", "described"),
    [
        ("generic", None, ("generic", "")),
        ("haswell", "+avx2", ("haswell", "+avx2")),
        ("znver3", "", ("znver3", "")),
    ],
)
def test_the_environment_may_name_another_processor(name, features, described, monkeypatch):
    monkeypatch.setenv("NUMBA_CPU_NAME", name)
    if features is not None:
        monkeypatch.setenv("NUMBA_CPU_FEATURES", features)
    assert baseline.host()[1:] == described


@pytest.mark.parametrize("settings", [{}, {"NUMBA_CPU_NAME": "generic"}, baseline.baseline_settings()])
def test_processors_are_described_as_numba_does(settings):
    program = (
        "from numba.core.registry import cpu_target\nfrom maxmargin.compiling import places as baseline\n"
        "assert baseline.host() == cpu_target.target_context.codegen().magic_tuple()"
    )
    subprocess.run([sys.executable, "-c", program], env=os.environ | settings, check=True, timeout=100)


@pytest.fixture(scope="module")
def shipping(tmp_path_factory):
    """Return a copy of the package that carries the kernel of hinges, and what the process reported."""
    if baseline.baseline_for(baseline.host()) is None:
        pytest.skip("needs a processor that runs code for the baseline")
    root = tmp_path_factory.mktemp("shipping")
    copy_package(root)
    said = run(root, MEASURED, NUMBA_CACHE_DIR=str(root / "made"), **baseline.baseline_settings())
    (root / "made" / "maxmargin").rename(root / "maxmargin" / "_kernels")
    return root, said


@pytest.mark.compiled
def test_a_package_with_kernels_compiles_nothing_and_finds_the_same_bits(shipping):
    root, first = shipping
    said = run(root, MEASURED, NUMBA_CACHE_DIR=str(root / "cache"))
    assert (first["hits"], first["misses"]) == (0, 1)
    assert (said["hits"], said["misses"], said["files"]) == (1, 0, [])
    assert said["numbers"] == first["numbers"] == measured()  # this process compiles for its processor


def _edited(root):
    file = root / "maxmargin" / "compiling" / "loops.py"
    file.write_text(file.read_text() + "\n# edited\n")


def _damaged(root):
    for file in (root / "maxmargin" / "_kernels").glob("*/*"):
        file.write_bytes(file.read_bytes()[:-1])


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "settings"),
    [
        (_edited, {}),
        (_damaged, {}),
        (None, {"NUMBA_CPU_NAME": "generic"}),
        (None, {"NUMBA_BOUNDSCHECK": "1"}),
        (None, {baseline.VARIABLE: ""}),
    ],
    ids=["edited", "damaged", "another processor", "another compiler", "none wanted"],
)
def test_kernels_that_do_not_fit_are_compiled(shipping, tmp_path, change, settings):
    shutil.copytree(shipping[0] / "maxmargin", tmp_path / "maxmargin")
    if change is not None:
        change(tmp_path)
    said = run(tmp_path, MEASURED, **settings)
    assert (said["hits"], said["misses"]) == (0, 1)
    assert said["numbers"] == measured()


@pytest.mark.compiled
@pytest.mark.slow
def test_another_version_of_numba_compiles(shipping, tmp_path):
    shutil.copytree(shipping[0] / "maxmargin", tmp_path / "maxmargin")
    said = run(tmp_path, WARNED + "import numba\nnumba.__version__ = '0.1'\n" + MEASURED)
    assert (said["hits"], said["misses"]) == (0, 1)


@pytest.mark.compiled
@pytest.mark.slow
def test_machines_share_a_directory(shipping, tmp_path):
    shutil.copytree(shipping[0] / "maxmargin", tmp_path / "maxmargin")
    shared = tmp_path / "shared"
    (tmp_path / "maxmargin" / "_kernels").rename(shared)
    assert run(tmp_path, MEASURED, **{baseline.VARIABLE: str(shared)})["hits"] == 1
    assert run(tmp_path, MEASURED)["hits"] == 0


@pytest.mark.slow
def test_a_wheel_carries_the_kernels_and_says_for_which_platform(tmp_path):
    repository = Path(__file__).parents[2]
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(repository / name, tmp_path / name)
    copy_package(tmp_path / "src")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", "dist", "."]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=300)
    (pure,) = (tmp_path / "dist").iterdir()
    assert pure.name.endswith("-py3-none-any.whl")
    code = tmp_path / "src" / "maxmargin" / "_kernels" / "kernels-0" / "code"
    code.parent.mkdir(parents=True)
    code.write_text("code")
    subprocess.run(build, cwd=tmp_path, check=True, timeout=300)
    (carrying,) = set((tmp_path / "dist").iterdir()) - {pure}
    version = "cp{}{}".format(*sys.version_info)
    assert f"-{version}-{version}-" in carrying.name
    unpacked = tmp_path / "unpacked"
    shutil.unpack_archive(carrying, unpacked, "zip")
    assert (unpacked / "maxmargin" / "_kernels" / "kernels-0" / "code").read_text() == "code"
