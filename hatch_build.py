"""A hook of the build: wheels that carry compiled kernels are for one version of Python and one platform."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Choose the wheel's tag by whether there are kernels, which `pyproject.toml` includes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Ask for the tag of this interpreter and platform."""
        if Path(self.root, "src", "maxmargin", "_kernels").is_dir():
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
