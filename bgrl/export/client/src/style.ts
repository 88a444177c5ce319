/** Styles: which of the plays that are nearly the best one a bot likes most. */
import { BAR, Board, HOME, POINTS, SLOTS } from "./board.js";

/**
 * Among the plays that lose at most `loss` points against the best, in the level's own ranking, the
 * one with the greatest sum of the other numbers times its features is taken; of equals the better.
 */
export interface Style {
  readonly name: string;
  readonly loss: number;
  readonly hits: number;
  readonly points: number;
  readonly shots: number;
  readonly back: number;
}

/** What a play leaves, seen by its mover. */
export interface Features {
  /** The opponent's checkers on the bar. */
  readonly hits: number;
  /** The mover's points, of two checkers or more. */
  readonly points: number;
  /** Of the 36 rolls, those that reach a blot of the mover; see shots. */
  readonly shots: number;
  /** The mover's checkers in the opponent's home or on the bar. */
  readonly back: number;
}

/** The features of a play that leaves `board`, the opponent on roll. */
export function features(board: Board): Features {
  let points = 0;
  let back = 0;
  for (let slot = 1; slot <= POINTS; slot++) if (board[SLOTS + slot] >= 2) points++;
  for (let slot = POINTS - HOME + 1; slot <= BAR; slot++) back += board[SLOTS + slot];
  return { hits: board[BAR], points, shots: shots(board), back };
}

/**
 * How many of the 36 rolls reach a blot of the side not on roll: by one die, both, or as much of a
 * double as it takes, whatever stands in between.
 */
export function shots(board: Board): number {
  // Bit d: some checker of the side on roll has a blot d pips ahead.
  let ahead = 0;
  for (let slot = 1; slot <= POINTS; slot++) {
    if (board[SLOTS + slot] !== 1) continue;
    for (let mine = 26 - slot; mine <= BAR; mine++) {
      if (board[mine] > 0) ahead |= 1 << (mine - (25 - slot));
    }
  }
  let ways = 0;
  for (let die1 = 1; die1 <= 6; die1++) {
    for (let die2 = 1; die2 <= 6; die2++) {
      let reach = (1 << die1) | (1 << die2) | (1 << (die1 + die2));
      if (die1 === die2) reach |= (1 << (3 * die1)) | (1 << (4 * die1));
      if (ahead & reach) ways++;
    }
  }
  return ways;
}

/** How much a style likes the play that leaves `board`. */
export function liking(style: Style, board: Board): number {
  const { hits, points, shots: exposed, back } = features(board);
  return style.hits * hits + style.points * points + style.shots * exposed + style.back * back;
}
