/**
 * All distinct plays of a roll.
 *
 * Occupied and open points are bit masks, so the checkers that a die can move come from one shift.
 * Doubles are enumerated with starting points never rising, which meets every final position once;
 * with two different dice a signature of what changed finds positions met twice.
 */
import { BAR, Board, CELLS, HOME, OFF, POINTS, SLOTS } from "./board.js";

/** [from, to] in the mover's slots, in an order in which the moves can be played. */
export type Moves = readonly (readonly [number, number])[];

const lowestBit = (mask: number): number => 31 - Math.clz32(mask & -mask);

function movable(occupied: number, open: number, die: number): number {
  let mask = occupied & (open << die);
  if (occupied & (1 << BAR)) return mask & (1 << BAR);
  if (occupied >> (HOME + 1) === 0 && occupied !== 0) {
    const highest = 31 - Math.clz32(occupied);
    mask |= highest < die ? 1 << highest : occupied & (1 << die);
  }
  return mask;
}

/**
 * Every distinct play of the player on roll: no two lead to the same position.
 *
 * As many dice as possible are played, and the higher one if only one of two can be. An empty list
 * is a dance: the turn passes.
 */
export function legalPlays(board: Board, die1: number, die2: number): Moves[] {
  let occupied = 0;
  let open = 0;
  let blots = 0;
  for (let slot = 1; slot < SLOTS; slot++) if (board[slot] > 0) occupied |= 1 << slot;
  for (let point = 1; point <= POINTS; point++) {
    const theirs = board[SLOTS + 25 - point];
    if (theirs < 2) open |= 1 << point;
    if (theirs === 1) blots |= 1 << point;
  }
  if (occupied === 0) return [];
  return die1 === die2
    ? doubles(board, occupied, open, die1)
    : twoDice(board, occupied, open, blots, Math.max(die1, die2), Math.min(die1, die2));
}

function signature(from1: number, to1: number, from2: number, to2: number, blots: number): number {
  const hit1 = (blots >> to1) & 1 ? to1 : 0;
  const hit2 = (blots >> to2) & 1 && to2 !== to1 ? to2 : 0;
  let [a, b, c, d] = [from1, from2, to1, to2];
  if (to1 === from2) [a, b, c, d] = [from1, 0, to2, 0];
  else if (to2 === from1) [a, b, c, d] = [from2, 0, to1, 0];
  const ordered = [Math.max(a, b), Math.min(a, b), Math.max(c, d), Math.min(c, d)];
  ordered.push(Math.max(hit1, hit2), Math.min(hit1, hit2));
  return ordered.reduce((sum, slot) => sum * 32 + slot, 0);
}

function twoDice(
  board: Board, occupied: number, open: number, blots: number, high: number, low: number,
): Moves[] {
  const plays: Moves[] = [];
  const known = new Set<number>();
  for (const [dieA, dieB] of [[high, low], [low, high]]) {
    for (let firsts = movable(occupied, open, dieA); firsts; firsts &= firsts - 1) {
      const from1 = lowestBit(firsts);
      const to1 = Math.max(from1 - dieA, OFF);
      let after = occupied;
      if (board[from1] === 1) after ^= 1 << from1;
      if (to1 > OFF) after |= 1 << to1;
      for (let seconds = movable(after, open, dieB); seconds; seconds &= seconds - 1) {
        const from2 = lowestBit(seconds);
        const to2 = Math.max(from2 - dieB, OFF);
        const mark = signature(from1, to1, from2, to2, blots);
        if (known.has(mark)) continue;
        known.add(mark);
        plays.push([[from1, to1], [from2, to2]]);
      }
    }
  }
  if (plays.length > 0) return plays;
  for (const die of [high, low]) {
    for (let firsts = movable(occupied, open, die); firsts; firsts &= firsts - 1) {
      const from = lowestBit(firsts);
      plays.push([[from, Math.max(from - die, OFF)]]);
    }
    if (plays.length > 0) break;
  }
  return plays;
}

function doubles(board: Board, occupied: number, open: number, die: number): Moves[] {
  let plays: Moves[] = [];
  let longest = 1;
  const moves: [number, number][] = [];
  const extend = (mask: number, highest: number): void => {
    let next = movable(mask, open, die) & ((2 << highest) - 1);
    if (moves.length === 4) next = 0;
    if (next === 0 && moves.length > 0) {
      if (moves.length > longest) {
        longest = moves.length;
        plays = [];
      }
      if (moves.length === longest) plays.push(moves.slice());
    }
    for (; next; next &= next - 1) {
      const from = lowestBit(next);
      const to = Math.max(from - die, OFF);
      let standing = board[from];
      for (const [source, target] of moves) standing += (target === from ? 1 : 0) - (source === from ? 1 : 0);
      let after = mask;
      if (standing === 1) after ^= 1 << from;
      if (to > OFF) after |= 1 << to;
      moves.push([from, to]);
      extend(after, from);
      moves.pop();
    }
  };
  extend(occupied, BAR);
  return plays;
}

/** Write to `out` at `at` the position that the opponent faces after `moves`. */
export function writeAfter(board: Board, moves: Moves, out: Board, at: number): void {
  out.set(board.subarray(SLOTS), at);
  out.set(board.subarray(0, SLOTS), at + SLOTS);
  for (const [from, to] of moves) {
    out[at + SLOTS + from]--;
    out[at + SLOTS + to]++;
    if (to > OFF && out[at + 25 - to] === 1) {
      out[at + 25 - to] = 0;
      out[at + BAR]++;
    }
  }
}

/** The position that the opponent faces after `moves`. */
export function boardAfter(board: Board, moves: Moves): Board {
  const out = new Int8Array(CELLS);
  writeAfter(board, moves, out, 0);
  return out;
}

/**
 * Standard notation, such as `8/5 6/5`, `bar/22*`, `24/18(2)` or `13/11*\/8`.
 *
 * Highest checker first; a checker's moves are joined, with the points between left out unless it
 * hits there. A bear-off that the higher die alone could make keeps its middle point.
 */
export function formatPlay(board: Board, moves: Moves, dice: readonly [number, number]): string {
  const name = (slot: number) => (slot === BAR ? "bar" : slot === OFF ? "off" : String(slot));
  const hits = new Set<number>();
  for (const [, to] of moves) if (to > OFF && board[SLOTS + 25 - to] === 1) hits.add(to);
  const paths: number[][] = [];
  for (const [from, to] of [...moves].sort((x, y) => y[0] - x[0] || y[1] - x[1])) {
    const path = paths.find((points) => points[points.length - 1] === from);
    if (path) path.push(to);
    else paths.push([from, to]);
  }
  const won = boardAfter(board, moves).subarray(SLOTS + 1).every((count) => count === 0);
  const words: string[] = [];
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(path.join(), (counts.get(path.join()) ?? 0) + 1);
  const seen = new Set<string>();
  for (const path of paths) {
    if (seen.has(path.join())) continue;
    seen.add(path.join());
    const last = path[path.length - 1];
    const looksSingle = last === OFF && path[0] <= Math.max(...dice) && !won;
    let text = name(path[0]);
    path.slice(1).forEach((point, i) => {
      if (hits.delete(point)) text += `/${point}*`;
      else if (i === path.length - 2 || looksSingle) text += `/${name(point)}`;
    });
    const count = counts.get(path.join()) ?? 1;
    words.push(count > 1 ? `${text}(${count})` : text);
  }
  return words.join(" ");
}
