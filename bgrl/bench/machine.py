"""The machine that a benchmark ran on."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "bgrl", "numpy", "numba", "llvmlite", "torch", "pyarrow", "gnubg-nn", "gnubg", "open-spiel",
)  # fmt: skip
_CPUINFO = Path("/proc/cpuinfo")


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory in bytes, system, versions, and the load before the run."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "load": round(os.getloadavg()[0], 2),
    }


def _cpu() -> str:
    """The processor's name, with family and model where the name alone says little."""
    if not _CPUINFO.exists():
        return platform.processor() or platform.machine()
    facts: dict[str, str] = {}
    for line in _CPUINFO.read_text().splitlines():
        key, colon, value = line.partition(":")
        if colon:
            facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name", platform.machine())
    if "cpu family" in facts:
        name += f" (family {facts['cpu family']}, model {facts.get('model', '?')})"
    return name


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
