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
  ) {}

  /** Read a flat file; throws BundleError, naming `name`, if it is not whole. */
  static parse(data: Uint8Array, name = "the flat net"): FlatNet {
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const text = (at: number, length: number) =>
      new TextDecoder().decode(data.subarray(at, at + length)).replace(/\0+$/, "");
    if (text(0, 8) !== "BGRLNET") throw new BundleError(`${name}: no flat net`);
    if (data.length < 160) throw new BundleError(`${name}: cut short`);
    const version = view.getUint32(8, true);
    if (version !== 1) throw new BundleError(`${name}: version ${version}; this client reads 1`);
    const digest = sha256(data.subarray(0, data.length - 32));
    if (digest.some((byte, i) => byte !== data[data.length - 32 + i])) {
      throw new BundleError(`${name}: cut short or altered`);
    }
    const storage = STORAGE[view.getUint32(12, true)];
    const nLayers = view.getUint32(32, true);
    const nInputs = view.getUint32(36, true);
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
      nIn = out;
    }
    const points: Points = [view.getUint32(20, true), view.getUint32(24, true), view.getUint32(28, true)];
    const encoder = { name: text(68, 32), version: view.getUint32(64, true), hash: text(52, 12) };
    return new FlatNet(
      text(40, 12), text(100, 28), points, view.getUint32(16, true), encoder, storage,
      slots, shift, scale, cap, layers,
    );
  }

  /** The net's inputs for the board at `cell`. */
  encode(cells: Board, cell = 0): Float32Array {
    const out = new Float32Array(this.slots.length);
    for (let i = 0; i < out.length; i++) {
      const above = Math.fround(cells[cell + this.slots[i]] - this.shift[i]);
      out[i] = Math.min(Math.max(Math.fround(above * this.scale[i]), 0), this.cap[i]);
    }
    return out;
  }

  async evaluate(cells: Board, count: number): Promise<Float32Array> {
    return this.evaluateNow(cells, count);
  }

  /** The same without a promise. */
  evaluateNow(cells: Board, count: number): Float32Array {
    const out = new Float32Array(5 * count);
    for (let i = 0; i < count; i++) {
      const level = lossLevel(cells, i * CELLS);
      if (level > 0) {
        writeLoss(level, out, 5 * i);
        continue;
      }
      let x = this.encode(cells, i * CELLS);
      this.layers.forEach(({ out: width, bias, weights }, k) => {
        const y = bias.slice();
        // Most inputs and about half of the hidden units are 0.
        for (let j = 0; j < x.length; j++) {
          const value = x[j];
          if (value === 0) continue;
          const row = j * width;
          for (let h = 0; h < width; h++) y[h] += value * weights[row + h];
        }
        const last = k === this.layers.length - 1;
        for (let h = 0; h < width; h++) y[h] = last ? 1 / (1 + Math.exp(-y[h])) : Math.max(y[h], 0);
        x = y;
      });
      out.set(x, 5 * i);
      clamp(out, 5 * i, cells, i * CELLS);
    }
    return out;
  }
}
