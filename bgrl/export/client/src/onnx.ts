/** A net from its ONNX file, evaluated by onnxruntime-web. The encoder is inside the file. */
import type * as Ort from "onnxruntime-web";
import { Board, CELLS, SLOTS } from "./board.js";
import { BundleError, Evaluator } from "./evaluator.js";
import { Points } from "./outcomes.js";

export type OrtModule = typeof Ort;

/** Boards a call of the runtime: larger batches gain nothing and cost memory. */
const BATCH = 2048;

export class OnnxNet implements Evaluator {
  private constructor(
    private readonly ort: OrtModule,
    private readonly session: Ort.InferenceSession,
    readonly hash: string,
    readonly variant: string,
    readonly points: Points,
  ) {}

  /**
   * `ort` is the module onnxruntime-web, handed in so that this client fixes neither its version
   * nor where it comes from. One thread unless the page is cross-origin isolated and sets more.
   */
  static async create(
    ort: OrtModule, data: Uint8Array, facts: { hash: string; variant: string; points: Points },
    name = "the ONNX net",
  ): Promise<OnnxNet> {
    if (!globalThis.crossOriginIsolated) ort.env.wasm.numThreads = 1;
    try {
      const session = await ort.InferenceSession.create(data, { executionProviders: ["wasm"] });
      return new OnnxNet(ort, session, facts.hash, facts.variant, facts.points);
    } catch (error) {
      throw new BundleError(`${name}: the runtime refuses it: ${String(error)}`);
    }
  }

  async evaluate(cells: Board, count: number): Promise<Float32Array> {
    const out = new Float32Array(5 * count);
    for (let start = 0; start < count; start += BATCH) {
      const n = Math.min(BATCH, count - start);
      const boards = Float32Array.from(cells.subarray(start * CELLS, (start + n) * CELLS));
      const board = new this.ort.Tensor("float32", boards, [n, 2, SLOTS]);
      const { probabilities } = await this.session.run({ board });
      out.set(probabilities.data as Float32Array, 5 * start);
    }
    return out;
  }
}
