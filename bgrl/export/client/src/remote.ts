/** The page's side of the worker: the same calls as Bot's, answered from the other thread. */
import { Board } from "./board.js";
import { Storage } from "./bundle.js";
import { Level } from "./level.js";
import { RankedPlay } from "./search.js";
import { Style } from "./style.js";

export type Request =
  | { kind: "open"; bundle: string; runtime?: string; storage?: Storage }
  | { kind: "rank"; level: string; board: Board; dice: [number, number] }
  | { kind: "choose"; level: string; board: Board; dice: [number, number]; style: string | null; chance: number }
  | { kind: "evaluate"; level: string; board: Board };

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

export class RemoteBots {
  private nextId = 0;
  private readonly waiting = new Map<number, { done: (value: unknown) => void; failed: (error: Error) => void }>();

  private constructor(private readonly worker: Worker) {
    worker.onmessage = (event: MessageEvent<Answer>) => {
      const { id, value, error } = event.data;
      const entry = this.waiting.get(id);
      this.waiting.delete(id);
      if (error === undefined) entry?.done(value);
      else entry?.failed(new Error(error));
    };
    worker.onerror = (event) => {
      for (const entry of this.waiting.values()) entry.failed(new Error(event.message));
      this.waiting.clear();
    };
  }

  levels: readonly Level[] = [];
  styles: readonly Style[] = [];

  /**
   * Start the worker script at `worker` and open the bundle in the folder `bundle`. `runtime` is
   * the URL of onnxruntime-web's module, its .wasm beside it; without one, plain TypeScript plays.
   * `storage` chooses the nets' files.
   */
  static async open(
    worker: string | URL, bundle: string | URL, { runtime, storage }: { runtime?: string | URL; storage?: Storage } = {},
  ): Promise<RemoteBots> {
    const bots = new RemoteBots(new Worker(worker, { type: "module" }));
    const request: Request = { kind: "open", bundle: String(bundle) };
    if (runtime) request.runtime = String(runtime);
    if (storage) request.storage = storage;
    const { levels, styles } = await bots.ask<{ levels: Level[]; styles: Style[] }>(request);
    [bots.levels, bots.styles] = [levels, styles];
    return bots;
  }

  rankPlays(level: string, board: Board, dice: [number, number]): Promise<RankedPlay[]> {
    return this.ask({ kind: "rank", level, board, dice });
  }

  /** `style` names one of `styles`; null: the level's own. */
  choose(
    level: string, board: Board, dice: [number, number], style: string | null = null, chance = Math.random(),
  ): Promise<RankedPlay | null> {
    return this.ask({ kind: "choose", level, board, dice, style, chance });
  }

  evaluate(level: string, board: Board): Promise<Float32Array> {
    return this.ask({ kind: "evaluate", level, board });
  }

  close(): void {
    this.worker.terminate();
  }

  private ask<T>(request: Request): Promise<T> {
    const id = this.nextId++;
    return new Promise<T>((done, failed) => {
      this.waiting.set(id, { done: done as (value: unknown) => void, failed });
      this.worker.postMessage({ id, request });
    });
  }
}
