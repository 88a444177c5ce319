import { Board } from "./board.js";
import { WithBearoff } from "./bearoff.js";
import { Bundle, LoadOptions } from "./bundle.js";
import { Evaluator } from "./evaluator.js";
import { chooseIndex, Level } from "./level.js";
import { Pruner, RankedPlay, rankPlays } from "./search.js";
import { Style } from "./style.js";

/** A level of a bundle, ready to play. */
export class Bot {
  constructor(readonly level: Level, readonly net: Evaluator, readonly pruner: Pruner | null = null) {}

  /** A level of `bundle`. It looks up the bear-off where the bundle has a database of its game. */
  static async load(bundle: Bundle, level: string, options: LoadOptions = {}): Promise<Bot> {
    const found = bundle.level(level);
    const name = options.net ?? found.net;
    const net = await bundle.net(name, options);
    const { bearoff } = bundle.netRecord(name);
    const { keep } = found;
    const small = found.pruner === null ? null : await bundle.net(found.pruner, options);
    return new Bot(
      found,
      bearoff ? new WithBearoff(net, () => bundle.bearoff(bearoff)) : net,
      small && keep !== null ? { net: small, keep } : null,
    );
  }

  /** The same bot with another style. */
  withStyle(style: Style): Bot {
    return new Bot({ ...this.level, style }, this.net, this.pruner);
  }

  /** Every legal play as the bot sees it, best first, with no miss and no style; empty for a dance. */
  rankPlays(board: Board, die1: number, die2: number): Promise<RankedPlay[]> {
    return rankPlays(this.net, board, die1, die2, this.level, this.pruner);
  }

  /** The play that the bot makes, or null for a dance. `chance`, of 0 up to 1, decides on a miss. */
  async choose(board: Board, die1: number, die2: number, chance = Math.random()): Promise<RankedPlay | null> {
    const plays = await this.rankPlays(board, die1, die2);
    if (plays.length === 0) return null;
    return plays[chooseIndex(this.level, plays, chance)];
  }

  /** The five probabilities of a position for the player on roll, without looking ahead. */
  evaluate(board: Board): Promise<Float32Array> {
    return this.net.evaluate(board, 1);
  }
}
