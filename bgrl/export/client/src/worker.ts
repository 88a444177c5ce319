/// <reference lib="webworker" />
/** The bot in a worker, so that looking ahead never holds up the page. See remote.ts. */
import { Bot } from "./bot.js";
import { Bundle, Storage, readFrom } from "./bundle.js";
import { OrtModule } from "./onnx.js";
import type { Answer, Request } from "./remote.js";

let bundle: Bundle | undefined;
let ort: OrtModule | undefined;
let storage: Storage | undefined;
const bots = new Map<string, Promise<Bot>>();

function bot(level: string): Promise<Bot> {
  if (!bundle) throw new Error("the worker has no bundle yet");
  let found = bots.get(level);
  if (!found) {
    found = Bot.load(bundle, level, { ort, storage });
    bots.set(level, found);
  }
  return found;
}

async function answer(request: Request): Promise<unknown> {
  switch (request.kind) {
    case "open":
      bundle = await Bundle.open(readFrom(request.bundle));
      bots.clear();
      storage = request.storage;
      if (request.runtime) {
        ort = (await import(request.runtime)) as OrtModule;
        ort.env.wasm.wasmPaths = new URL("./", request.runtime).href;
      }
      return { levels: bundle.levels, styles: bundle.styles };
    case "rank":
      return (await bot(request.level)).rankPlays(request.board, ...request.dice);
    case "choose": {
      const { level, board, dice, style, chance } = request;
      const plain = await bot(level);
      const styled = bundle && style !== null ? plain.withStyle(bundle.style(style)) : plain;
      return styled.choose(board, ...dice, chance);
    }
    case "evaluate":
      return (await bot(request.level)).evaluate(request.board);
  }
}

globalThis.onmessage = async (event: MessageEvent<{ id: number; request: Request }>) => {
  const { id, request } = event.data;
  const reply: Answer = await answer(request).then(
    (value) => ({ id, value }),
    (error: unknown) => ({ id, error: error instanceof Error ? error.message : String(error) }),
  );
  globalThis.postMessage(reply);
};
