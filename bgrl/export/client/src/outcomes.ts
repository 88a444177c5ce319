/**
 * The five cumulative probabilities: win, win a gammon or better, win a backgammon, lose a gammon
 * or better, lose a backgammon; for the player on roll before the dice.
 */
import { BAR, Board, HOME, OFF, POINTS, SLOTS } from "./board.js";

export const OUTPUTS = ["win", "win_gammon", "win_backgammon", "lose_gammon", "lose_backgammon"] as const;

/** What a single game, a gammon and a backgammon count. */
export type Points = readonly [number, number, number];

/** Cubeless equity in points of the five probabilities at `at`. */
export function equity(p: Float32Array, at: number, points: Points): number {
  return (
    points[0] * (2 * p[at] - 1) +
    (points[1] - points[0]) * (p[at + 1] - p[at + 3]) +
    (points[2] - points[1]) * (p[at + 2] - p[at + 4])
  );
}

/** The five probabilities as the other player sees them. */
export function flipped(p: Float32Array): Float32Array {
  return Float32Array.of(1 - p[0], p[3], p[4], p[1], p[2]);
}

/** Write the certain loss of `level` (1 single, 2 gammon, 3 backgammon) to `p` at `at`. */
export function writeLoss(level: number, p: Float32Array, at: number): void {
  p.fill(0, at, at + 5);
  if (level >= 2) p[at + 3] = 1;
  if (level >= 3) p[at + 4] = 1;
}

/**
 * Make the five probabilities at `at` nested and possible for the board at `cell`.
 *
 * There is no gammon against a side that has borne off, and without contact no backgammon against
 * one that has left the other's home.
 */
export function clamp(p: Float32Array, at: number, cells: Board, cell: number): void {
  const rearmost = (side: number): number => {
    let slot = BAR;
    while (slot > 0 && cells[cell + side * SLOTS + slot] === 0) slot--;
    return slot;
  };
  const mine = rearmost(0);
  const theirs = rearmost(1);
  const contact = mine + theirs >= BAR;
  const behind = POINTS - HOME;
  const theirGammon = cells[cell + SLOTS + OFF] === 0;
  const myGammon = cells[cell + OFF] === 0;
  const within = (x: number, top: number) => Math.min(Math.max(x, 0), top);
  const win = within(p[at], 1);
  p[at] = win;
  p[at + 1] = theirGammon ? within(p[at + 1], p[at]) : 0;
  p[at + 2] = theirGammon && (contact || theirs > behind) ? within(p[at + 2], p[at + 1]) : 0;
  p[at + 3] = myGammon ? within(p[at + 3], 1 - p[at]) : 0;
  p[at + 4] = myGammon && (contact || mine > behind) ? within(p[at + 4], p[at + 3]) : 0;
}
