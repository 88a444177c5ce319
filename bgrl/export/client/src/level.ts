/** Levels: how far a bot looks ahead, how it misses, and what it likes. */
import { Board } from "./board.js";
import { liking, Style } from "./style.js";

/**
 * Which of the ranked plays stay: the `accept` best, and up to `extra` more that are at most
 * `threshold` points worse than the best one. At least one always stays.
 */
export interface Filter {
  readonly accept: number;
  readonly extra: number;
  readonly threshold: number;
}

/** What a search leaves out. */
export interface Filters {
  /** Element p chooses, by their values at p plies, the plays to look at more deeply; null: all. */
  readonly root: readonly (Filter | null)[];
  /** Chooses likewise among the plays of a roll inside the search, by their values at 0 plies. */
  readonly reply: Filter;
}

/**
 * How a level overlooks the best play. In its own ranking, play k of the first `depth` has the
 * weight 1 for the best one and rate * exp(-(equity lost) / scale) for the others.
 */
export interface Misses {
  readonly rate: number;
  readonly scale: number;
  readonly depth: number;
}

/** What was measured of a level; `error` is a standard error. */
export interface Measured {
  /** The net's hash. */
  readonly net: string;
  readonly command: string;
  readonly date: string;
  /** Against the level `anchor`; of players `scale` points apart the better wins ten games of eleven. */
  readonly rating: {
    readonly value: number; readonly error: number; readonly anchor: string; readonly anchor_rating: number;
    readonly scale: number; readonly games: number; readonly seed: number;
  } | null;
  /** 500 times the mean error in points, on reference positions. */
  readonly pr: { readonly value: number; readonly error: number; readonly decisions: number; readonly judge: string } | null;
}

export interface Level {
  readonly name: string;
  /** As GNU Backgammon counts: 0 is the net's own evaluation. */
  readonly plies: number;
  readonly filters: Filters;
  /** How many plays of a roll the pruner leaves (see search.ts); null: it has none. */
  readonly keep: number | null;
  readonly misses: Misses | null;
  readonly style: Style;
  readonly measured: Measured | null;
  /** Names the net's files in the bundle. */
  readonly net: string;
  /** The same of the net that prunes its search. */
  readonly pruner: string | null;
}

/** How many plays pass, given their equities from the best on; at least one. */
export function passing(filter: Filter, equities: ArrayLike<number>): number {
  let n = Math.min(equities.length, Math.max(1, filter.accept));
  const most = Math.min(equities.length, filter.accept + filter.extra);
  while (n < most && equities[0] - equities[n] <= filter.threshold) n++;
  return n;
}

/** Which play is taken, 0 the best: `equities` best first, `chance` of 0 up to 1. */
export function missIndex(misses: Misses | null, equities: readonly number[], chance: number): number {
  if (misses === null) return 0;
  const weights = equities
    .slice(0, misses.depth)
    // A play that was looked at less deeply may seem better than the best one.
    .map((e, k) => Math.exp(Math.min(0, e - equities[0]) / misses.scale) * (k > 0 ? misses.rate : 1));
  let left = chance * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [k, weight] of weights.entries()) {
    left -= weight;
    if (left < 0) return k;
  }
  return 0;
}

/** A play as a ranking has it: what the opponent faces, the mover's equity, how far it was looked into. */
export interface Candidate {
  readonly board: Board;
  readonly equity: number;
  readonly plies: number;
}

/** Which of `plays`, best first, a level makes: a miss, or what its style likes best. */
export function chooseIndex(
  { misses, style }: Pick<Level, "misses" | "style">, plays: readonly Candidate[], chance: number,
): number {
  const picked = missIndex(misses, plays.map((play) => play.equity), chance);
  if (picked > 0 || style.loss === 0) return picked;
  const [best] = plays;
  let [most, liked] = [-Infinity, 0];
  plays.forEach((play, k) => {
    if (play.plies < best.plies || best.equity - play.equity > style.loss) return;
    const likes = liking(style, play.board);
    if (likes > most) [most, liked] = [likes, k];
  });
  return liked;
}
