"""The errors that a user can cause. Each message is one line that names what is wrong and where."""


class BgrlError(Exception):
    """Base of every error that the command line reports as one line and exit status 2."""


class InvalidPosition(BgrlError):
    """A board, position ID or XGID that no game can reach or that is malformed."""


class IllegalPlay(BgrlError):
    """A play that the rules do not allow with these dice."""


class CorruptFile(BgrlError):
    """A file that is cut short, unreadable, or whose hash is not the recorded one."""


class SchemaMismatch(BgrlError):
    """A file of another kind or schema version than the reader needs."""


class EncoderMismatch(BgrlError):
    """A net or file made with another encoder than the one at hand."""


class MissingExtra(BgrlError):
    """An optional package is not installed."""

    def __init__(self, package: str, extra: str, what: str):
        super().__init__(f"{what} needs {package}: pip install 'bgrl[{extra}]'")
