/** A net from its flat file (the layout is documented in bgrl/nets/flat.py), in plain TypeScript. */
import { Board, CELLS, lossLevel } from "./board.js";
import { BundleError, Evaluator } from "./evaluator.js";
import { clamp, Points, writeLoss } from "./outcomes.js";
import { sha256 } from "./sha256.js";

interface Layer {
  readonly out: number;
  readonly bias: Float32Array;
  /** Transposed, [in][out]: an input's weights lie together. */
  readonly weights: Float32Array;
}

/** How many counts a cell can have, and so a row of the first layer each. */
const COUNTS = 16;
const STORAGE = ["float32", "float16", "int8"] as const;

function fromFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

export class FlatNet implements Evaluator {
  private constructor(
    readonly hash: string,
    readonly variant: string,
    readonly points: Points,
    readonly checkers: number,
    readonly encoder: { readonly name: string; readonly version: number; readonly hash: string },
    readonly storage: (typeof STORAGE)[number],
    private readonly slots: Uint32Array,
    private readonly shift: Float32Array,
    private readonly scale: Float32Array,
    private readonly cap: Float32Array,
    private readonly layers: readonly Layer[],
    private readonly products: boolean,
  ) {}

  /** See row and emptySums; made when needed. */
  private readonly rows: (Float32Array | undefined)[] = [];
  private empty: Float64Array | undefined;

  /** Read a flat file; throws BundleError, naming `name`, if it is not whole. */
  static parse(data: Uint8Array, name = "the flat net"): FlatNet {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const text = (at: number, length: number) =>
      new TextDecoder().decode(data.subarray(at, at + length)).replace(/\0+$/, "");
    if (text(0, 8) !== "BGRLNET") throw new BundleError(`${name}: no flat net`);
    if (data.length < 160) throw new BundleError(`${name}: cut short`);
    const version = view.getUint32(8, true);
    if (version !== 2) throw new BundleError(`${name}: version ${version}; this client reads 2`);
    const digest = sha256(data.subarray(0, data.length - 32));
    if (digest.some((byte, i) => byte !== data[data.length - 32 + i])) {
      throw new BundleError(`${name}: cut short or altered`);
    }
    const storage = STORAGE[view.getUint32(12, true)];
    const nLayers = view.getUint32(32, true);
    const nInputs = view.getUint32(36, true);
    const products = view.getUint32(124, true) === 1;
    let at = 128;
    const floats = (count: number) => {
      const out = Float32Array.from({ length: count }, (_, i) => view.getFloat32(at + 4 * i, true));
      at += 4 * count;
      return out;
    };
    const integers = (count: number) => {
      const out = Uint32Array.from({ length: count }, (_, i) => view.getUint32(at + 4 * i, true));
      at += 4 * count;
      return out;
    };
    const widths = integers(nLayers);
    const slots = integers(nInputs);
    const [shift, scale, cap] = [floats(nInputs), floats(nInputs), floats(nInputs)];
    const layers: Layer[] = [];
    let nIn = nInputs;
    for (const out of widths) {
      const bias = floats(out);
      const rowScale = storage === "int8" ? floats(out) : undefined;
      const weights = new Float32Array(nIn * out);
      const bytes = storage === "int8" ? 1 : storage === "float16" ? 2 : 4;
      for (let row = 0; row < out; row++) {
        for (let column = 0; column < nIn; column++) {
          const place = at + bytes * (row * nIn + column);
          weights[column * out + row] = rowScale
            ? Math.fround(view.getInt8(place) * rowScale[row])
            : bytes === 2
              ? fromFloat16(view.getUint16(place, true))
              : view.getFloat32(place, true);
        }
      }
      at += Math.ceil((bytes * out * nIn) / 4) * 4;
      layers.push({ out, bias, weights });
      nIn = products && layers.length === 1 ? out / 2 : out;
    }
    const points: Points = [view.getUint32(20, true), view.getUint32(24, true), view.getUint32(28, true)];
    const encoder = { name: text(68, 32), version: view.getUint32(64, true), hash: text(52, 12) };
    return new FlatNet(
      text(40, 12), text(100, 24), points, view.getUint32(16, true), encoder, storage,
      slots, shift, scale, cap, layers, products,
    );
  }

  /** The net's inputs for the board at `cell`. */
  encode(cells: Board, cell = 0): Float32Array {
    const out = new Float32Array(this.slots.length);
    for (let i = 0; i < out.length; i++) out[i] = this.input(i, cells[cell + this.slots[i]]);
    return out;
  }

  async evaluate(cells: Board, count: number): Promise<Float32Array> {
    return this.evaluateNow(cells, count);
  }

  /** The same without a promise. */
  evaluateNow(cells: Board, count: number): Float32Array {
    const out = new Float32Array(5 * count);
    // The first layer's sums of one board, and the board: the next one mostly differs in a few
    // counts only. In double precision, adding and taking away leaves no trace.
    const sums = this.emptySums().slice();
    const last = new Int8Array(CELLS);
    for (let i = 0; i < count; i++) {
      const level = lossLevel(cells, i * CELLS);
      if (level > 0) {
        writeLoss(level, out, 5 * i);
        continue;
      }
      for (let cell = 0; cell < CELLS; cell++) {
        const n = cells[i * CELLS + cell];
        if (n === last[cell]) continue;
        replace(sums, this.row(cell, last[cell]), this.row(cell, n));
        last[cell] = n;
      }
      let x: Float64Array = this.products ? multiplyHalves(sums) : sums;
      for (const layer of this.layers.slice(1)) x = multiply(x, layer);
      for (let k = 0; k < 5; k++) out[5 * i + k] = 1 / (1 + Math.exp(-x[k]));
      clamp(out, 5 * i, cells, i * CELLS);
    }
    return out;
  }

  /** The first layer's sums of a board with no checkers. */
  private emptySums(): Float64Array {
    if (!this.empty) {
      this.empty = Float64Array.from(this.layers[0].bias);
      const nothing = new Float32Array(this.empty.length);
      for (let cell = 0; cell < CELLS; cell++) replace(this.empty, nothing, this.row(cell, 0));
    }
    return this.empty;
  }

  /** What `n` checkers in a cell give each unit of the first layer. */
  private row(cell: number, n: number): Float32Array {
    return (this.rows[cell * COUNTS + n] ??= this.newRow(cell, n));
  }

  private newRow(cell: number, n: number): Float32Array {
    const { out: width, weights } = this.layers[0];
    const row = new Float64Array(width);
    for (let i = 0; i < this.slots.length; i++) {
      if (this.slots[i] !== cell) continue;
      const input = this.input(i, n);
      for (let h = 0; h < width; h++) row[h] += input * weights[i * width + h];
    }
    return Float32Array.from(row);
  }

  private input(i: number, n: number): number {
    const above = Math.fround(n - this.shift[i]);
    return Math.min(Math.max(Math.fround(above * this.scale[i]), 0), this.cap[i]);
  }
}

function replace(sums: Float64Array, old: Float32Array, row: Float32Array): void {
  for (let h = 0; h < sums.length; h++) sums[h] += row[h] - old[h];
}

/** Each of the first half, where it is above 0, times what is at its place in the second half. */
function multiplyHalves(x: Float64Array): Float64Array {
  const width = x.length / 2;
  const y = new Float64Array(width);
  for (let j = 0; j < width; j++) if (x[j] > 0 && x[j + width] > 0) y[j] = x[j] * x[j + width];
  return y;
}

function multiply(x: Float64Array, { out, bias, weights }: Layer): Float64Array {
  const y = Float64Array.from(bias);
  // More than half of the hidden units are at or below 0.
  for (let j = 0; j < x.length; j++) {
    const value = x[j];
    if (value <= 0) continue;
    const row = j * out;
    for (let h = 0; h < out; h++) y[h] += value * weights[row + h];
  }
  return y;
}
