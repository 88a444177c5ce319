import { Board } from "./board.js";
import { Bundle, Storage } from "./bundle.js";
import { Evaluator } from "./evaluator.js";
import { chooseIndex, Level } from "./level.js";
import { OrtModule } from "./onnx.js";
import { RankedPlay, rankPlays } from "./search.js";

/** A level of a bundle, ready to play. */
export class Bot {
  constructor(readonly level: Level, readonly net: Evaluator) {}

  static async load(bundle: Bundle, level: string, ort?: OrtModule, storage?: Storage): Promise<Bot> {
    const found = bundle.level(level);
    return new Bot(found, await bundle.net(found.net, ort, storage));
  }

  /** Every legal play as the bot sees it, best first, with no miss; empty for a dance. */
  rankPlays(board: Board, die1: number, die2: number): Promise<RankedPlay[]> {
    return rankPlays(this.net, board, die1, die2, this.level);
  }

  /** The play that the bot makes, or null for a dance. `chance`, of 0 up to 1, decides on a miss. */
  async choose(board: Board, die1: number, die2: number, chance = Math.random()): Promise<RankedPlay | null> {
    const plays = await this.rankPlays(board, die1, die2);
    if (plays.length === 0) return null;
    return plays[chooseIndex(this.level.misses, plays.map((play) => play.equity), chance)];
  }

  /** The five probabilities of a position for the player on roll, by the net's own evaluation. */
  evaluate(board: Board): Promise<Float32Array> {
    return this.net.evaluate(board, 1);
  }
}
