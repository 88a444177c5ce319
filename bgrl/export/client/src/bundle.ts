/** A bundle as bgrl exports it: every file is checked against the size and hash in bundle.json. */
import { Bearoff } from "./bearoff.js";
import { BundleError, Evaluator } from "./evaluator.js";
import { FlatNet } from "./flat.js";
import { Level } from "./level.js";
import { OnnxNet, OrtModule } from "./onnx.js";
import { Points } from "./outcomes.js";
import { sha256Hex } from "./sha256.js";
import { Style } from "./style.js";

/** Gets a file of the bundle by name, as by fetch or from a disk. */
export type ReadFile = (name: string) => Promise<Uint8Array>;
export type Storage = "float32" | "float16" | "int8";

/** How to load a net. */
export interface LoadOptions {
  /** The module onnxruntime-web; without it the flat file is evaluated in plain TypeScript. */
  readonly ort?: OrtModule | undefined;
  readonly storage?: Storage | undefined;
  /** Another net of the bundle in place of the level's own, as a smaller one. */
  readonly net?: string | undefined;
}

/** What bundle.json says of a net. */
export interface NetRecord {
  readonly variant: string;
  readonly points: Points;
  /** The bear-off database of its game. */
  readonly bearoff: string;
  /** By Storage. */
  readonly stored: Readonly<Record<string, { readonly net: string }>>;
}

interface Record_ {
  readonly format: string;
  readonly version: number;
  readonly nets: Readonly<Record<string, NetRecord>>;
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
  /** What has been read, by a name: nets and databases are large, and bots share them. */
  private readonly loaded = new Map<string, Promise<unknown>>();

  private constructor(
    private readonly readFile: ReadFile,
    readonly record: Record_,
    readonly levels: readonly Level[],
    /** Styles that any level can take. */
    readonly styles: readonly Style[],
  ) {}

  /** Throws BundleError, naming the file, for what is missing, altered or of another version. */
  static async open(readFile: ReadFile): Promise<Bundle> {
    const record = parse(await readFile("bundle.json"), "bundle.json", "bgrl.bundle") as Record_;
    for (const part of ["files", "nets"] as const) {
      if (typeof record[part] !== "object" || record[part] === null) {
        throw new BundleError(`bundle.json: names no ${part}`);
      }
    }
    const bundle = new Bundle(readFile, record, [], []);
    const { levels, styles } = parse(await bundle.file("levels.json"), "levels.json", "bgrl.levels") as {
      levels?: Level[]; styles?: Style[];
    };
    if (!Array.isArray(levels) || levels.length === 0) throw new BundleError("levels.json: holds no levels");
    if (!Array.isArray(styles)) throw new BundleError("levels.json: holds no styles");
    return new Bundle(readFile, record, levels, styles);
  }

  /** The level of that name. */
  level(name: string): Level {
    const level = this.levels.find((one) => one.name === name);
    if (!level) throw new BundleError(`there is no level ${name}: ${this.levels.map((l) => l.name).join(", ")}`);
    return level;
  }

  /** The style of that name. */
  style(name: string): Style {
    const style = this.styles.find((one) => one.name === name);
    if (!style) throw new BundleError(`there is no style ${name}: ${this.styles.map((s) => s.name).join(", ")}`);
    return style;
  }

  /** What bundle.json says of a net. */
  netRecord(net: string): NetRecord {
    const record = this.record.nets[net];
    if (!record) throw new BundleError(`there is no net ${net}: ${Object.keys(this.record.nets).join(", ")}`);
    return record;
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

  /** A net from its flat file, in plain TypeScript. */
  flatNet(net: string, storage: Storage = "float32"): Promise<FlatNet> {
    const name = fileName(net, storage, "bgnet");
    return this.once(name, async () => FlatNet.parse(await this.file(name), name));
  }

  /** A net by onnxruntime-web, or in plain TypeScript if no `ort` is given. */
  async net(net: string, { ort, storage = "float32" }: LoadOptions = {}): Promise<Evaluator> {
    if (!ort) return this.flatNet(net, storage);
    const { variant, points, stored } = this.netRecord(net);
    const name = fileName(net, storage, "onnx");
    if (!stored[storage]) throw new BundleError(`${name}: not named by bundle.json`);
    const facts = { hash: stored[storage].net, variant, points };
    return this.once(name, async () => OnnxNet.create(ort, await this.file(name), facts, name));
  }

  /** The bear-off database in the file `name`. */
  bearoff(name: string): Promise<Bearoff> {
    return this.once(name, async () => Bearoff.parse(await this.file(name), name));
  }

  private once<T>(name: string, load: () => Promise<T>): Promise<T> {
    let found = this.loaded.get(name) as Promise<T> | undefined;
    if (!found) {
      found = load();
      this.loaded.set(name, found);
      // What could not be read is tried again.
      found.catch(() => this.loaded.delete(name));
    }
    return found;
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
