"""The page for app developers: its examples give what they say."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "bgrl" / "export" / "README.md"


def test_the_examples_hold():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted >= 10
    assert found.failed == 0
