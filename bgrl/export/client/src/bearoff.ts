/**
 * The one-sided bear-off database (the layout is documented in bgrl/search/compact.py), and a net
 * that looks positions up in it.
 */
import { Board, CELLS, HOME, lossLevel, SLOTS } from "./board.js";
import { BundleError, Evaluator } from "./evaluator.js";
import { clamp, Points, writeLoss } from "./outcomes.js";
import { sha256 } from "./sha256.js";

const MOST_ROLLS = 32;
const WHOLE = 65535;

/** n over k, for n below 32 and k up to 6. */
const CHOOSE: readonly (readonly number[])[] = Array.from({ length: 32 }, (_, n) =>
  Array.from({ length: HOME + 1 }, (_, k) => {
    let ways = 1;
    for (let i = 0; i < k; i++) ways = (ways * (n - i)) / (i + 1);
    return ways;
  }),
);

/** The number of the checkers that `side` (0 on roll, 1 the opponent) of the board at `cell` has in its home. */
export function homeIndex(cells: Board, cell: number, side: 0 | 1): number {
  let index = 0;
  let behind = 0;
  for (let k = 1; k <= HOME; k++) {
    behind += cells[cell + side * SLOTS + HOME + 1 - k];
    index += CHOOSE[behind + k - 1][k];
  }
  return index;
}

/** Whether `side` (0 on roll, 1 the opponent) of the board at `cell` has all its checkers at home or off. */
function home(cells: Board, cell: number, side: 0 | 1): boolean {
  for (let slot = HOME + 1; slot < SLOTS; slot++) {
    if (cells[cell + side * SLOTS + slot] > 0) return false;
  }
  return true;
}

/** Whether both sides have all their checkers at home or off. */
export function bothHome(cells: Board, cell: number): boolean {
  return home(cells, cell, 0) && home(cells, cell, 1);
}

export class Bearoff {
  private constructor(
    /** How many checkers a side has at most. */
    readonly checkers: number,
    private readonly homes: number,
    private readonly fullHomes: number,
    private readonly begins: Uint8Array,
    /** Where each run starts in `chances`, and at the end their number. */
    private readonly starts: Uint32Array,
    private readonly chances: Uint16Array,
  ) {}

  /** Read the file; throws BundleError, naming `name`, if it is not whole. */
  static parse(data: Uint8Array, name = "the bear-off database"): Bearoff {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    if (new TextDecoder().decode(data.subarray(0, 8)) !== "BGRLOFF\0") {
      throw new BundleError(`${name}: no bear-off database`);
    }
    if (data.length < 48) throw new BundleError(`${name}: cut short`);
    const version = view.getUint32(8, true);
    if (version !== 1) throw new BundleError(`${name}: version ${version}; this client reads 1`);
    const end = data.length - 32;
    const digest = sha256(data.subarray(0, end));
    if (digest.some((byte, i) => byte !== data[end + i])) throw new BundleError(`${name}: cut short or altered`);
    const checkers = view.getUint32(12, true);
    if (checkers < 1 || checkers > 15) throw new BundleError(`${name}: is for ${checkers} checkers`);
    const homes = CHOOSE[checkers + HOME][HOME];
    const fullHomes = CHOOSE[checkers + HOME - 1][HOME - 1];
    const runs = homes + fullHomes;
    const lengths = data.subarray(16 + runs, 16 + 2 * runs);
    const starts = new Uint32Array(runs + 1);
    lengths.forEach((length, i) => (starts[i + 1] = starts[i] + length));
    if (end !== 16 + 2 * runs + 2 * starts[runs]) {
      throw new BundleError(`${name}: its runs of chances do not fit its size`);
    }
    const chances = Uint16Array.from({ length: starts[runs] }, (_, i) => view.getUint16(16 + 2 * runs + 2 * i, true));
    return new Bearoff(checkers, homes, fullHomes, data.slice(16, 16 + runs), starts, chances);
  }

  /** The chance that home number `home` needs exactly `rolls` rolls to bear all its checkers off. */
  allOff(home: number, rolls: number): number {
    return this.chance(home, rolls);
  }

  /** The same for the first one off, if all the checkers are still in the home; else 0. */
  firstOff(home: number, rolls: number): number {
    const rank = home - (this.homes - this.fullHomes);
    return rank < 0 ? 0 : this.chance(this.homes + rank, rolls);
  }

  /** Write the five probabilities of the board at `cell`, both sides home, to `p` at `at`. */
  write(cells: Board, cell: number, p: Float32Array, at: number): void {
    const mine = homeIndex(cells, cell, 0);
    const theirs = homeIndex(cells, cell, 1);
    if (theirs === 0) {
      writeLoss(lossLevel(cells, cell), p, at);
      return;
    }
    let [win, winGammon, loseGammon] = [0, 0, 0];
    let notOff = 0; // the chance that the opponent needs t rolls or more
    let noneOff = 0; // that none of the opponent's is off before the t-th
    let mineNoneOff = 0; // that none of mine is off after t rolls
    for (let t = MOST_ROLLS - 1; t > 0; t--) {
      const ours = this.allOff(mine, t);
      const their = this.allOff(theirs, t);
      notOff += their;
      win += ours * notOff;
      noneOff += this.firstOff(theirs, t);
      winGammon += ours * noneOff;
      loseGammon += their * mineNoneOff;
      mineNoneOff += this.firstOff(mine, t);
    }
    p.set([win, winGammon, 0, loseGammon, 0], at);
    clamp(p, at, cells, cell);
  }

  private chance(run: number, rolls: number): number {
    const at = this.starts[run] + rolls - this.begins[run];
    return rolls >= this.begins[run] && at < this.starts[run + 1] ? this.chances[at] / WHOLE : 0;
  }
}

/** A net that knows the bear-off: it looks up every position with both sides home. */
export class WithBearoff implements Evaluator {
  /** `load` gets the database; it is asked for positions that need it alone. */
  constructor(readonly net: Evaluator, private readonly load: () => Promise<Bearoff>) {}

  get variant(): string {
    return this.net.variant;
  }

  get points(): Points {
    return this.net.points;
  }

  get hash(): string {
    return this.net.hash;
  }

  isExact(cells: Board, cell: number): boolean {
    return bothHome(cells, cell);
  }

  mayReachExact(cells: Board, cell: number): boolean {
    return home(cells, cell, 1);
  }

  async evaluate(cells: Board, count: number): Promise<Float32Array> {
    const known: number[] = [];
    for (let i = 0; i < count; i++) if (bothHome(cells, i * CELLS)) known.push(i);
    const out = known.length < count ? await this.net.evaluate(cells, count) : new Float32Array(5 * count);
    if (known.length > 0) {
      const table = await this.load();
      for (const i of known) table.write(cells, i * CELLS, out, 5 * i);
    }
    return out;
  }
}
