"""An object that lives in a process of its own, called from here.

The engines that we measure against keep their state in globals, memory is only told for a process
as a whole, and what one measurement leaves behind must not slow the next.
"""

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from bgrl.errors import BgrlError, MissingExtra
from bgrl.processes import single_threaded


class Missing(BgrlError):
    """What was to be measured needs a package that is not installed."""


class Child:
    """`make(*args)` made in a spawned process; its methods are called by name.

    one_thread: its libraries use one thread. `start_seconds` is how long it took from the start of
    the process until the object was there.

    Raises Missing when the object needs a package that is absent, and BgrlError when anything else
    keeps it from being made.
    """

    def __init__(self, make: Callable[..., Any], *args: Any, one_thread: bool = True):
        self.name = make.__name__
        # spawn, not fork: numba's and torch's threads don't survive a fork.
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, args), daemon=True)
        start = time.perf_counter()
        with single_threaded() if one_thread else nullcontext():
            self._process.start()
        theirs.close()
        try:
            self.result()
        except BaseException:
            self.close()
            raise
        self.start_seconds = time.perf_counter() - start

    def start(self, method: str, *args: Any) -> None:
        """Have a method called; :meth:`result` waits for what it returns."""
        self._connection.send((method, args))

    def result(self) -> Any:
        """What the call that was started last returns. Raises BgrlError if it fails."""
        try:
            value, error, missing = self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join(10)
            code = self._process.exitcode
            raise BgrlError(f"bench: the process of {self.name} ended with code {code}") from None
        if missing:
            raise Missing(missing)
        if error:
            raise BgrlError(f"bench: {self.name}: {error}")
        return value

    def call(self, method: str, *args: Any) -> Any:
        """The result of a method, waited for."""
        self.start(method, *args)
        return self.result()

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        if self._process.is_alive():
            self._process.kill()
        self._process.join()

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _serve(connection: Connection, make: Callable[..., Any], args: tuple[Any, ...]) -> None:
    # The progress lines of what is measured are not for the user.
    with open(os.devnull, "w") as sys.stderr:
        try:
            target = _answer(connection, partial(make, *args), tell=False)
            while target is not None:
                method, arguments = connection.recv()
                _answer(connection, partial(getattr(target, method), *arguments))
        except (EOFError, ConnectionError, KeyboardInterrupt):
            return  # the parent is gone or going


def _answer(connection: Connection, work: Callable[[], Any], tell: bool = True) -> Any:
    """Do `work` and send (its result if `tell`, error, what is missing); returns the result."""
    value = None
    error = missing = ""
    try:
        value = work()
    except MissingExtra as absent:
        missing = str(absent)
    except BgrlError as failure:
        error = str(failure)
    except Exception:
        error = " | ".join(traceback.format_exc().strip().splitlines()[-3:])
    connection.send((value if tell else None, error, missing))
    return value
