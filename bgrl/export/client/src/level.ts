/** Levels: how far a bot looks ahead, and how it misses. */

/** Which plays are worth looking further: at most `keep`, and `within` so many points of the best. */
export interface Filter {
  readonly keep: number;
  readonly within: number;
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
  readonly candidates: Filter;
  readonly replies: Filter;
  readonly misses: Misses | null;
  /** Names the net's files in the bundle. */
  readonly net: string;
}

/** How many plays pass, given their equities from the best on; at least one. */
export function passing(filter: Filter, equities: ArrayLike<number>): number {
  let near = 0;
  while (near < equities.length && equities[0] - equities[near] <= filter.within) near++;
  return Math.max(1, Math.min(filter.keep, near));
}

/** Which play is taken, 0 the best: `equities` best first, `chance` of 0 up to 1. */
export function chooseIndex(misses: Misses | null, equities: readonly number[], chance: number): number {
  if (misses === null) return 0;
  const weights = equities
    .slice(0, misses.depth)
    .map((e, k) => Math.exp((e - equities[0]) / misses.scale) * (k > 0 ? misses.rate : 1));
  let left = chance * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [k, weight] of weights.entries()) {
    left -= weight;
    if (left < 0) return k;
  }
  return 0;
}
