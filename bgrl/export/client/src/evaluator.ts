import { Board } from "./board.js";
import { Points } from "./outcomes.js";

/** Anything that estimates the five probabilities of positions. */
export interface Evaluator {
  /** The game it plays: "backgammon", "nackgammon" or "hypergammon". */
  readonly variant: string;
  readonly points: Points;
  /** 12 hex digits that name the net. */
  readonly hash: string;
  /**
   * Five probabilities for each of `count` boards, one after another in `cells`; clamped, and the
   * certain result where the opponent has no checker left.
   */
  evaluate(cells: Board, count: number): Promise<Float32Array>;
  /** Whether it knows the board at `cell` without a net, so that looking ahead gains nothing. */
  isExact?(cells: Board, cell: number): boolean;
  /** Whether a play from the board at `cell` may lead to one that it knows so. */
  mayReachExact?(cells: Board, cell: number): boolean;
}

/** A file that is damaged, of another kind, or of a version that this client does not read. */
export class BundleError extends Error {
  override name = "BundleError";
}
