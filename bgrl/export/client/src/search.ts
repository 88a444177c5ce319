/** Ranking plays by a net's own evaluation or by looking ahead. */
import { Board, CELLS, lossLevel, swapped } from "./board.js";
import { Evaluator } from "./evaluator.js";
import { Filter, Level, passing } from "./level.js";
import { clamp, equity, flipped, writeLoss } from "./outcomes.js";
import { legalPlays, Moves, writeAfter } from "./plays.js";

export interface RankedPlay {
  readonly moves: Moves;
  /** The position that the opponent faces. */
  readonly board: Board;
  /** Cubeless, in points, for the player who plays. */
  readonly equity: number;
  /** The five, for the player who plays, after the play. */
  readonly probabilities: Float32Array;
  /** How far this play was looked into. */
  readonly plies: number;
}

/** A cheap net that chooses, where the best play of a roll ends the search, the plays that the net itself looks at. */
export interface Pruner {
  readonly net: Evaluator;
  /** How many. */
  readonly keep: number;
}

/** The plays of a roll from one of several boards: where the positions that they reach start and end. */
interface Group {
  readonly board: number;
  readonly ways: number;
  start: number;
  end: number;
}

/** The 21 distinct rolls with their ways of 36. */
const ROLLS: readonly (readonly [number, number, number])[] = [1, 2, 3, 4, 5, 6].flatMap((a) =>
  Array.from({ length: a }, (_, i): [number, number, number] => [a, i + 1, a === i + 1 ? 1 : 2]),
);

/**
 * The n-ply value of each of `count` boards for its player on roll: five numbers each.
 *
 * At 0 plies, and where the net is exact, the net's own. At n plies the mean over the 21 rolls by their ways, each answered by
 * the play that is best at n - 1 plies among those that pass `reply` by the net's own evaluation; at 1 ply, of those that
 * `pruner` leaves, but for boards from which a play may reach an exact one.
 */
export async function values(
  net: Evaluator, cells: Board, count: number, plies: number, reply: Filter, pruner: Pruner | null = null,
): Promise<Float32Array> {
  if (plies === 0) return net.evaluate(cells, count);
  const out = new Float32Array(5 * count);
  // What can be reached, one group a (board, roll): the plays' positions, or the one of a dance.
  const groups: Group[] = [];
  let reached = new Int8Array(CELLS * 1024);
  let size = 0;
  for (let b = 0; b < count; b++) {
    const board = cells.subarray(b * CELLS, (b + 1) * CELLS);
    const level = lossLevel(board);
    if (level > 0) {
      writeLoss(level, out, 5 * b);
      continue;
    }
    if (net.isExact?.(cells, b * CELLS)) {
      out.set(await net.evaluate(board, 1), 5 * b);
      continue;
    }
    for (const [die1, die2, ways] of ROLLS) {
      const plays = legalPlays(board, die1, die2);
      const start = size;
      const needed = (size + Math.max(1, plays.length)) * CELLS;
      if (needed > reached.length) {
        const larger = new Int8Array(Math.max(needed, 2 * reached.length));
        larger.set(reached);
        reached = larger;
      }
      if (plays.length === 0) reached.set(swapped(board), CELLS * size++);
      for (const moves of plays) writeAfter(board, moves, reached, CELLS * size++);
      groups.push({ board: b, ways, start, end: size });
    }
  }
  if (plies === 1 && pruner) {
    const pruned = groups.filter(({ board }) => !net.mayReachExact?.(cells, board * CELLS));
    size = await prune(pruner, reached, size, groups, new Set(pruned));
  }
  const own = await net.evaluate(reached, size);
  // The opponent's equity after each play: the mover wants the least. In single precision, as bgrl
  // has it, so that the same plays are equally good; the first listed is then the best.
  const theirs = Float32Array.from({ length: size }, (_, i) => equity(own, 5 * i, net.points));
  const lookedAt = groups.map(({ start, end }) => {
    const order = Array.from({ length: end - start }, (_, i) => start + i);
    if (plies === 1) return [order.reduce((best, i) => (theirs[i] < theirs[best] ? i : best))];
    order.sort((i, k) => theirs[i] - theirs[k]);
    return order.slice(0, passing(reply, order.map((i) => -theirs[i])));
  });
  let deeper = own;
  let place = (i: number): number => i;
  if (plies > 1) {
    const chosen = lookedAt.flat();
    const boards = new Int8Array(CELLS * chosen.length);
    chosen.forEach((i, k) => boards.set(reached.subarray(i * CELLS, (i + 1) * CELLS), k * CELLS));
    deeper = await values(net, boards, chosen.length, plies - 1, reply, pruner);
    const index = new Map(chosen.map((i, k) => [i, k]));
    place = (i) => index.get(i) ?? 0;
  }
  const totals = new Float64Array(5 * count);
  groups.forEach(({ board, ways }, g) => {
    let best = -1;
    let least = Infinity;
    for (const i of lookedAt[g]) {
      const value = equity(deeper, 5 * place(i), net.points);
      if (value < least) [best, least] = [5 * place(i), value];
    }
    const mine = flipped(deeper.subarray(best, best + 5));
    mine.forEach((p, k) => (totals[5 * board + k] += (ways / 36) * p));
  });
  for (const board of new Set(groups.map((group) => group.board))) {
    out.set(totals.subarray(5 * board, 5 * board + 5), 5 * board);
    clamp(out, 5 * board, cells, CELLS * board);
  }
  return out;
}

/**
 * Keep what `pruner` leaves of the groups in `pruned`, in its order, and move all that is kept to the front of `reached`.
 * Returns how many positions are left.
 */
async function prune(
  { net, keep }: Pruner, reached: Board, size: number, groups: readonly Group[], pruned: ReadonlySet<Group>,
): Promise<number> {
  const theirs = await net.evaluate(reached, size);
  const equities = Float32Array.from({ length: size }, (_, i) => equity(theirs, 5 * i, net.points));
  let left = 0;
  for (const group of groups) {
    let kept = Array.from({ length: group.end - group.start }, (_, i) => group.start + i);
    if (kept.length > keep && pruned.has(group)) {
      kept = kept.sort((i, k) => equities[i] - equities[k] || i - k).slice(0, keep).sort((i, k) => i - k);
    }
    group.start = left;
    for (const i of kept) reached.copyWithin(CELLS * left++, CELLS * i, CELLS * (i + 1));
    group.end = left;
  }
  return left;
}

/**
 * Every legal play, best first; empty for a dance. The plays that pass the filters are ranked by
 * `plies` and come before the others.
 */
export async function rankPlays(
  net: Evaluator, board: Board, die1: number, die2: number, level: Pick<Level, "plies" | "filters">,
  pruner: Pruner | null = null,
): Promise<RankedPlay[]> {
  const ranked = async (chosen: readonly Moves[], plies: number): Promise<RankedPlay[]> => {
    const cells = new Int8Array(CELLS * chosen.length);
    chosen.forEach((moves, i) => writeAfter(board, moves, cells, i * CELLS));
    const found = await values(net, cells, chosen.length, plies, level.filters.reply, pruner);
    return chosen
      .map((moves, i) => ({
        moves,
        board: cells.slice(i * CELLS, (i + 1) * CELLS),
        equity: Math.fround(-equity(found, 5 * i, net.points)),
        probabilities: flipped(found.subarray(5 * i, 5 * i + 5)),
        plies,
      }))
      .sort((a, b) => b.equity - a.equity);
  };
  const plays = legalPlays(board, die1, die2);
  if (plays.length === 0) return [];
  let left = await ranked(plays, 0);
  let dropped: RankedPlay[] = [];
  for (let plies = 0; plies < level.plies; plies++) {
    const filter = level.filters.root[plies];
    if (!filter) continue;
    if (plies > 0) left = await ranked(left.map((play) => play.moves), plies);
    const n = passing(filter, left.map((play) => play.equity));
    dropped = [...left.slice(n), ...dropped];
    left = left.slice(0, n);
  }
  if (level.plies > 0) left = await ranked(left.map((play) => play.moves), level.plies);
  return [...left, ...dropped];
}
