"""The same work by other engines, where they are installed; each in a process of its own."""

import random
import time
from typing import Any

from bgrl.bench.ours import Lookahead, NetGames, rate
from bgrl.errors import MissingExtra
from bgrl.game import BACKGAMMON
from bgrl.nets import Weights
from bgrl.players.gnubg import Gnubg107Player, load_gnubg_nn

ROLLS = [(a, b) for a in range(1, 7) for b in range(1, 7)]
# What the engine takes: [opponent, player on roll], points 1 to 24 and the bar.
START = BACKGAMMON.start_board()[:, 1:].tolist()


class GnubgNnRandomGames:
    """gnubg-nn: games of random plays, driven by `moves`."""

    def __init__(self, seed: int):
        self._gnubg = load_gnubg_nn()
        self._random = random.Random(seed).random
        self._play()

    def _play(self) -> int:
        moves, board_of, chance = (
            self._gnubg.moves,
            self._gnubg.board_from_position_key,
            self._random,
        )
        board: Any = START
        while True:
            keys = moves(board, *ROLLS[int(36 * chance())])
            if not keys:
                board = board[::-1]
                continue
            opponent, mover = board_of(keys[int(len(keys) * chance())])
            if not any(mover):
                return 1
            board = mover, opponent

    def run(self, seconds: float) -> float:
        """Games a second."""
        return rate(self._play, seconds)


class GnubgNnSelfPlay:
    """gnubg-nn: games of its 0-ply player with itself, by `best_move`."""

    def __init__(self, seed: int):
        self._gnubg = load_gnubg_nn()
        self._random = random.Random(seed).random
        self._play()

    def _play(self) -> int:
        best_move, board_of = self._gnubg.best_move, self._gnubg.board_from_position_key
        chance = self._random
        board: Any = START
        while True:
            # The key that comes with b=1 has the sides swapped, as the next turn wants them.
            _, key = best_move(board, *ROLLS[int(36 * chance())], 0, b"X", 1)
            board = board_of(key)
            if not any(board[0]):
                return 1

    def run(self, seconds: float) -> float:
        """Games a second."""
        return rate(self._play, seconds)


class GnubgEvaluations:
    """PyPI gnubg: `evaluate` at 0-ply of the candidate plays that a net's games bring up.

    No position is asked for twice, or its cache would answer.
    """

    BOARDS = 5000

    def __init__(self, weights: Weights, seed: int):
        try:
            import gnubg
        except ImportError as error:
            raise MissingExtra("gnubg", "engines", "gnubg's evaluate") from error
        self._evaluate = gnubg.evaluate
        self._arguments = gnubg.cubeinfo(), gnubg.evalcontext()
        self._games = NetGames(weights, seed)
        self._seen: set[bytes] = set()
        self._boards()

    def _boards(self) -> list[list[list[int]]]:
        boards = [b for b in self._games.candidates(self.BOARDS) if b.tobytes() not in self._seen]
        self._seen.update(board.tobytes() for board in boards)
        return [board[::-1, 1:].tolist() for board in boards if board[0, 1:].any()]

    def run(self, seconds: float) -> float:
        """Evaluations a second, the making of the boards not counted."""
        evaluate, arguments = self._evaluate, self._arguments
        done, elapsed = 0, 0.0
        while elapsed < seconds:
            boards = self._boards()
            start = time.perf_counter()
            for board in boards:
                evaluate(board, *arguments)
            elapsed += time.perf_counter() - start
            done += len(boards)
        return done / elapsed


class GnubgLookahead(Lookahead):
    """PyPI gnubg: decisions at 2 plies with its pruning nets, by its "normal" move filter."""

    def __init__(self, weights: Weights, seed: int):
        super().__init__(weights, seed, Gnubg107Player(2))


class OpenSpielRandomGames:
    """OpenSpiel: games of random actions, from Python."""

    def __init__(self, seed: int):
        try:
            import pyspiel
        except ImportError as error:
            raise MissingExtra("open-spiel", "dev", "OpenSpiel") from error
        self._game = pyspiel.load_game("backgammon")
        self._random = random.Random(seed).random
        self._play()

    def _play(self) -> int:
        chance = self._random
        state = self._game.new_initial_state()
        while not state.is_terminal():
            # At a chance node too, whose outcomes are the 36 equally likely rolls.
            actions = state.legal_actions()
            state.apply_action(actions[int(len(actions) * chance())])
        return 1

    def run(self, seconds: float) -> float:
        """Games a second."""
        return rate(self._play, seconds)
