/**
 * The one board representation.
 *
 * A board is 52 counts: slot s of the player on roll at s, of the opponent at 26 + s. Each side is
 * seen by its owner, and a slot is the number of pips that a checker there still has to go: 0 is
 * borne off, 1 to 24 are the points, 25 is the bar. My point p is the opponent's point 25 - p.
 */
export type Board = Int8Array;

export const SLOTS = 26;
export const CELLS = 2 * SLOTS;
export const OFF = 0;
export const BAR = 25;
export const POINTS = 24;
export const HOME = 6;

/** Where each side's checkers start, as [slot, count]. */
export const STARTS: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  backgammon: [[24, 2], [13, 5], [8, 3], [6, 5]],
  nackgammon: [[24, 2], [23, 2], [13, 4], [8, 3], [6, 4]],
  hypergammon: [[24, 1], [23, 1], [22, 1]],
};

/** The position in which a game of `variant` starts; throws for an unknown one. */
export function startBoard(variant = "backgammon"): Board {
  const start = STARTS[variant];
  if (!start) throw new Error(`there is no variant "${variant}"`);
  const board = new Int8Array(CELLS);
  for (const [slot, count] of start) board[slot] = board[SLOTS + slot] = count;
  return board;
}

/** The same position with the other player on roll. */
export function swapped(board: Board): Board {
  const out = new Int8Array(CELLS);
  out.set(board.subarray(SLOTS), 0);
  out.set(board.subarray(0, SLOTS), SLOTS);
  return out;
}

/** Pips that a side (0 on roll, 1 the opponent) still has to go. */
export function pipCount(board: Board, side: 0 | 1): number {
  let pips = 0;
  for (let slot = 1; slot < SLOTS; slot++) pips += slot * board[side * SLOTS + slot];
  return pips;
}

/**
 * How the player on roll has just lost: 0 not at all, 1 a single game, 2 a gammon, 3 a backgammon.
 *
 * A gammon: none borne off. A backgammon: also one on the bar or in the winner's home.
 */
export function lossLevel(cells: Board, at = 0): 0 | 1 | 2 | 3 {
  for (let slot = 1; slot < SLOTS; slot++) if (cells[at + SLOTS + slot] > 0) return 0;
  if (cells[at + OFF] > 0) return 1;
  for (let slot = POINTS - HOME + 1; slot < SLOTS; slot++) if (cells[at + slot] > 0) return 3;
  return 2;
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The 14 characters of GNU Backgammon's position ID. */
export function positionId(board: Board): string {
  const bits = new Uint8Array(84);
  let at = 0;
  for (const side of [1, 0]) {
    for (let slot = 1; slot < SLOTS; slot++) {
      for (let n = board[side * SLOTS + slot]; n > 0; n--) bits[at++] = 1;
      at++;
    }
  }
  // Ten bytes, lowest bit first, as base64, highest bit first.
  const inByteOrder = (i: number) => bits[(i & ~7) | (7 - (i & 7))];
  let id = "";
  for (let i = 0; i < 84; i += 6) {
    let value = 0;
    for (let k = 0; k < 6; k++) value = (value << 1) | (i + k < 80 ? inByteOrder(i + k) : 0);
    id += BASE64[value];
  }
  return id;
}

/** The board of a position ID, each side having `checkers`; throws if it is malformed. */
export function fromPositionId(id: string, checkers = 15): Board {
  const text = id.trim().replace(/=+$/, "");
  if (text.length !== 14) throw new Error(`position ID "${id}" has ${text.length} characters, not 14`);
  const bits: number[] = [];
  for (const character of text) {
    const value = BASE64.indexOf(character);
    if (value < 0) throw new Error(`position ID "${id}": "${character}" is not base64`);
    for (let k = 5; k >= 0; k--) bits.push((value >> k) & 1);
  }
  const board = new Int8Array(CELLS);
  let at = 0;
  for (const side of [1, 0]) {
    let left = checkers;
    for (let slot = 1; slot < SLOTS; slot++) {
      for (; at < 80 && bits[(at & ~7) | (7 - (at & 7))]; at++) {
        board[side * SLOTS + slot]++;
        left--;
      }
      at++;
    }
    if (left < 0 || at > 80) throw new Error(`position ID "${id}": too many checkers`);
    board[side * SLOTS + OFF] = left;
  }
  return board;
}
