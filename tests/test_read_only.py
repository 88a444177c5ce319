"""An installation that nobody may write to, used by someone without a home folder."""

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import os
os.access = lambda *arguments: False
import bgrl
from bgrl.game.dice import game_stream
game_stream(1, 1)
folder = os.environ["NUMBA_CACHE_DIR"]
print(sum(len(files) for _, _, files in os.walk(folder)), folder)
"""


def test_n08_kernels_are_cached_in_a_folder_of_the_process(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    env.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    cached, folder = done.stdout.split()
    assert int(cached) > 0
    assert Path(folder).parent == tmp_path
    assert not Path(folder).exists()


def test_n08_a_folder_that_the_user_chose_is_kept(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == str(tmp_path)
    assert list(tmp_path.iterdir())
