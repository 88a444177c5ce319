/** Levels: how far a bot looks ahead, and how it misses. */

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

export interface Level {
  readonly name: string;
  /** As GNU Backgammon counts: 0 is the net's own evaluation. */
  readonly plies: number;
  readonly filters: Filters;
  readonly misses: Misses | null;
  /** Names the net's files in the bundle. */
  readonly net: string;
}

/** How many plays pass, given their equities from the best on; at least one. */
export function passing(filter: Filter, equities: ArrayLike<number>): number {
  let n = Math.min(equities.length, Math.max(1, filter.accept));
  const most = Math.min(equities.length, filter.accept + filter.extra);
  while (n < most && equities[0] - equities[n] <= filter.threshold) n++;
  return n;
}

/** Which play is taken, 0 the best: `equities` best first, `chance` of 0 up to 1. */
export function chooseIndex(misses: Misses | null, equities: readonly number[], chance: number): number {
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
