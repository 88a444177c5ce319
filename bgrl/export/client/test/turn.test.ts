import assert from "node:assert/strict";
import { test } from "node:test";
import { Board, Turn, boardAfter, fromPositionId, legalPlays, startBoard, swapped } from "../src/index.js";

/** A small generator of whole numbers, so that a failure comes again. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function finals(board: Board, dice: [number, number]): Set<string> {
  return new Set(legalPlays(board, ...dice).map((moves) => swapped(boardAfter(board, moves)).join()));
}

/** Every board on which the turn may end, by every order of moves. */
function ends(turn: Turn, found = new Set<string>()): Set<string> {
  if (turn.isComplete) found.add(turn.board.join());
  for (const { from, to } of turn.options()) {
    assert.ok(turn.play(from, to));
    ends(turn, found);
    assert.ok(turn.undo());
  }
  return found;
}

test("move by move, exactly the legal final positions are reached", () => {
  const next = numbers(3);
  let board = startBoard();
  for (let ply = 0; ply < 400; ply++) {
    const dice: [number, number] = [next(6) + 1, next(6) + 1];
    const plays = legalPlays(board, ...dice);
    if (plays.length < 60) {
      const turn = new Turn(board, dice);
      assert.equal(turn.isDance, plays.length === 0);
      if (!turn.isDance) assert.deepEqual(ends(turn), finals(board, dice));
      assert.deepEqual(turn.board, board, "taking back restores the board");
    }
    board = plays.length > 0 ? boardAfter(board, plays[next(plays.length)]) : swapped(board);
    if (board.subarray(27).every((count) => count === 0)) board = startBoard();
  }
});

test("a move that strands a die is not offered", () => {
  const turn = new Turn(fromPositionId("wDAAwP8HBAAEAA"), [6, 4]);
  const offered = turn.options().map(({ from, to }) => `${from}/${to}`).sort();
  assert.deepEqual(offered, ["24/20", "9/3"]);
  assert.equal(turn.play(9, 5), false);
  assert.equal(turn.undo(), false);
});

test("taking back a hit puts both checkers back", () => {
  const board = fromPositionId("ACAA+P8BEAAAAA");
  const turn = new Turn(board, [3, 2]);
  assert.ok(turn.play(13, 11));
  assert.equal(turn.board[26 + 25], 1);
  assert.ok(turn.undo());
  assert.deepEqual(turn.board, board);
  assert.deepEqual(turn.diceLeft, [3, 2]);
});
