"""The command line: `bgrl <stage> [key=value ...]`, a thin file a stage.

A stage is a line in `STAGES` of `main.py`, a dataclass in `config.py`, a `configs/<stage>.yaml`
that opens with its launch line and one override, and a module here of the same name with
`run(config, launch)`.
"""
