/** A bundle as bgrl exports it: every file is checked against the size and hash in bundle.json. */
import { BundleError, Evaluator } from "./evaluator.js";
import { FlatNet } from "./flat.js";
import { Level } from "./level.js";
import { OnnxNet, OrtModule } from "./onnx.js";
import { sha256Hex } from "./sha256.js";

/** Gets a file of the bundle by name, as by fetch or from a disk. */
export type ReadFile = (name: string) => Promise<Uint8Array>;
export type Storage = "float32" | "float16" | "int8";

interface Record_ {
  readonly format: string;
  readonly version: number;
  readonly files: Readonly<Record<string, { readonly bytes: number; readonly sha256: string }>>;
}

/** Read files below a URL. */
export function readFrom(base: string | URL): ReadFile {
  return async (name) => {
    const response = await fetch(new URL(name, base));
    if (!response.ok) throw new BundleError(`${name}: ${response.status} ${response.statusText}`);
    return new Uint8Array(await response.arrayBuffer());
  };
}

export class Bundle {
  private constructor(
    private readonly readFile: ReadFile,
    readonly record: Record_,
    readonly levels: readonly Level[],
  ) {}

  /** Throws BundleError, naming the file, for what is missing, altered or of another version. */
  static async open(readFile: ReadFile): Promise<Bundle> {
    const record = parse(await readFile("bundle.json"), "bundle.json", "bgrl.bundle") as Record_;
    if (typeof record.files !== "object" || record.files === null) {
      throw new BundleError("bundle.json: names no files");
    }
    const bundle = new Bundle(readFile, record, []);
    const levels = parse(await bundle.file("levels.json"), "levels.json", "bgrl.levels") as {
      levels?: Level[];
    };
    if (!Array.isArray(levels.levels) || levels.levels.length === 0) {
      throw new BundleError("levels.json: holds no levels");
    }
    return new Bundle(readFile, record, levels.levels);
  }

  /** The level of that name. */
  level(name: string): Level {
    const level = this.levels.find((one) => one.name === name);
    if (!level) throw new BundleError(`there is no level ${name}: ${this.levels.map((l) => l.name).join(", ")}`);
    return level;
  }

  /** A file of the bundle, checked. */
  async file(name: string): Promise<Uint8Array> {
    const expected = this.record.files[name];
    if (!expected) throw new BundleError(`${name}: not named by bundle.json`);
    const data = await this.readFile(name);
    if (data.length !== expected.bytes) {
      throw new BundleError(`${name}: has ${data.length} bytes, not ${expected.bytes}`);
    }
    if (sha256Hex(data) !== expected.sha256) {
      throw new BundleError(`${name}: its SHA-256 is not the one in bundle.json`);
    }
    return data;
  }

  /** A level's net from its flat file, in plain TypeScript. */
  async flatNet(net: string, storage: Storage = "float32"): Promise<FlatNet> {
    const name = fileName(net, storage, "bgnet");
    return FlatNet.parse(await this.file(name), name);
  }

  /** A level's net by onnxruntime-web, or in plain TypeScript if no `ort` is given. */
  async net(net: string, ort?: OrtModule, storage: Storage = "float32"): Promise<Evaluator> {
    const flat = await this.flatNet(net, storage);
    if (!ort) return flat;
    const name = fileName(net, storage, "onnx");
    return OnnxNet.create(ort, await this.file(name), flat, name);
  }
}

function fileName(net: string, storage: Storage, ending: string): string {
  return storage === "float32" ? `${net}.${ending}` : `${net}.${storage}.${ending}`;
}

function parse(data: Uint8Array, name: string, format: string): unknown {
  let value: { format?: unknown; version?: unknown } | null;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch {
    throw new BundleError(`${name}: not JSON`);
  }
  if (value?.format !== format) throw new BundleError(`${name}: its format is not ${format}`);
  if (value.version !== 1) throw new BundleError(`${name}: version ${String(value.version)}; this client reads 1`);
  return value;
}
