"""How much memory this process has."""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident_bytes() -> tuple[int, int]:
    """(now, at most so far): the resident memory of this process.

    Linux tells both. Elsewhere both are the greatest so far.
    """
    if _STATUS.exists():
        # Not getrusage: on Linux its maximum includes the parent's, from before the exec.
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        now, most = (int(lines[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM"))
        return now, most
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    most *= 1 if sys.platform == "darwin" else 1024
    return most, most
