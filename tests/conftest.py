"""What every test gets: no network, none of the user's settings, gnubg tests only with gnubg."""

import importlib.util
import os

import hypothesis
import pytest

# Set before any test imports what reads them; worker processes inherit them.
os.environ["WANDB_MODE"] = "offline"
os.environ["WANDB_SILENT"] = "true"
os.environ.pop("BGRL_DEBUG", None)

# A first call may compile a kernel, which a deadline would take for a slow test.
hypothesis.settings.register_profile("bgrl", deadline=None)
hypothesis.settings.load_profile("bgrl")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("gnubg_nn") is None:
        for item in items:
            if item.get_closest_marker("gnubg"):
                item.add_marker(pytest.mark.skip(reason="the gnubg extra is not installed"))
