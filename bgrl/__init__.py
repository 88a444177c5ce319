"""bgrl: train, measure and export self-play backgammon nets."""

import os


def _give_numba_a_cache() -> None:
    """Compiled kernels go beside the code or into the home folder; with neither writable numba
    refuses to import them, so this process and its workers get a folder of their own."""
    code, home = os.path.dirname(__file__), os.path.expanduser("~")
    if "NUMBA_CACHE_DIR" in os.environ or os.access(code, os.W_OK) or os.access(home, os.W_OK):
        return
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="bgrl-")
    os.environ["NUMBA_CACHE_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


_give_numba_a_cache()
