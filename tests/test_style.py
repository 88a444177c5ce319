"""The code's form, types and import order, so that one command checks all that CI does."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"], ["lint-imports"]],
    ids=" ".join,
)
def test_tool_has_nothing_to_say(command):
    tool = Path(sys.executable).parent / command[0]
    if not tool.exists():
        pytest.skip(f"{command[0]} is not installed: pip install 'bgrl[dev]'")
    done = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
