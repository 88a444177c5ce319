"""Running the command line inside a test."""

import pytest

from bgrl.cli.main import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command line in an empty folder; returns (status, standard output, error)."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command
