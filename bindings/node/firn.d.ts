// Types of firn.mjs. All 64-bit values are bigint.

/** Where firn.wasm is: a URL, its bytes, a response with them, or the compiled module. */
export type Source = URL | string | BufferSource | Response | WebAssembly.Module | Promise<Response>;

export class FirnError extends Error {
  /** "FIRN_ERANGE" and the like; of an answer of firnd the end of its problem type, such as "no-slot". */
  readonly code: string;
  /** The HTTP status of an answer of firnd. */
  readonly status?: number;
}

/** Compile firn.wasm, by default the one beside firn.mjs. Each thread (worker) loads its own. */
export function load(source?: Source): Promise<Ids>;

export interface Kind {
  readonly name: string;
  readonly about: string;
  /** Of the binary form; 0: there is none. */
  readonly bits: number;
  /** It carries the time at which it was made. */
  readonly time: boolean;
  /** Its texts sort by that time. */
  readonly sorts: boolean;
  /** mint() makes it. */
  readonly makes: boolean;
  /** A 64-bit number, which any codec can write. */
  readonly number: boolean;
  /** Two of them can be equal by design. */
  readonly unsafe: boolean;
}

export interface Reading {
  kind: string;
  /** Of kind snowflake: the preset's name, or "custom". */
  layout: string;
  /** The canonical text. */
  text: string;
  /** Of kinds with 64 bits. */
  number: bigint | null;
  /** The binary form; empty if there is none. */
  bytes: Uint8Array;
  unixUs: bigint | null;
  /** When it was made, to the millisecond. */
  time: Date | null;
  /** Of inspect(): how plausible this reading is, 0 to 100. */
  score: number;
  /** In the order of the bits; `bit` counts from the high end. */
  fields: { name: string; value: string; bit: number; bits: number }[];
}

export interface Layout {
  /** The canonical text. */
  text: string;
  slots: bigint;
  tickUs: number;
  epoch: Date;
  /** The first moment that its time field cannot express. */
  end: Date;
  sortable: boolean;
  unsigned: boolean;
  decodeOnly: boolean;
  fields: { name: keyof Parts; width: number; shift: number }[];
}

/** The fields of a 64-bit ID; time counts ticks since the layout's epoch. */
export interface Parts {
  time: bigint;
  dc: bigint;
  node: bigint;
  shard: bigint;
  seq: bigint;
}

/**
 * When a tick's IDs are used up, or the clock stepped back. wait: spin, which blocks the event loop (a millisecond for a used-up
 * tick, at most a second). error: throw FIRN_EAGAIN or FIRN_ECLOCK. borrow: stamp up to 5 s ahead of the clock.
 */
export type Policy = "wait" | "error" | "borrow";

export interface GeneratorOptions {
  /**
   * The worker number, below the layout's `slots`. A number chosen by hand is the caller's promise that no other process,
   * thread or tab uses it with this layout at the same time, and that the clock is not set back between two runs: nothing here
   * can check that. lease() takes one that firnd guarantees.
   */
  slot: number;
  /** A preset's name or a layout text; "firn" unless given. */
  layout?: string;
  /** "wait" unless given. */
  policy?: Policy;
}

export interface Generator {
  /** One ID, larger than all before (if the layout's time is above its sequence). */
  next(): bigint;
  /** With a shard number, for layouts that carry one beside the node. */
  nextShard(shard: bigint | number): bigint;
  /** `n` IDs, rising. */
  fill(n: number): BigUint64Array;
  /** No ID comes after this. */
  close(): void;
}

export interface MintOptions {
  /** snowflake, sonyflake, tsid: required; see GeneratorOptions. */
  slot?: number;
  policy?: Policy;
  layout?: string;
  shard?: bigint | number;
  /** How a number is written: a name of `codecs`. */
  encoding?: string;
  /** typeid: its type; of others a business prefix, "ord" gives ord_…. */
  prefix?: string;
  /** nanoid, cuid2: characters; dated: digits of the counter. */
  length?: number;
  /** nanoid. */
  alphabet?: string;
  /** uuidv3, uuidv5: dns, url, oid, x500 or a UUID. */
  namespace?: string;
  name?: string;
  /** ticket, dated: the first number. They count in this mint only. */
  first?: bigint | number;
  /** dated. */
  reset?: "day" | "month" | "year";
}

export interface Mint {
  next(): string;
}

/** A slot that firnd lends to this process. It is extended while next() is called. */
export interface Lease {
  readonly slot: number;
  readonly layout: string;
  /** An ID made here. It waits for the network only when the window is used up and could not be extended in time. */
  next(): Promise<bigint>;
  /** Give the slot back. */
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Sent as `Authorization: Bearer`. */
  token?: string;
  /** Of one request; 2,000 unless given. */
  timeoutMs?: number;
}

export interface Ids {
  readonly version: string;
  readonly kinds: readonly Kind[];
  readonly layouts: readonly { name: string; text: string; summary: string }[];
  readonly codecs: readonly { name: string; about: string; alphabet: string }[];

  uuid4(): string;
  /** Those of one module rise. */
  uuid7(): string;
  /** Those of one module rise. */
  ulid(): string;
  ksuid(): string;
  xid(): string;
  objectid(): string;
  nanoid(): string;
  cuid2(): string;
  /** IDs of any kind as text. */
  mint(kind: string, options?: MintOptions): Mint;
  /** Snowflake IDs on a slot that the caller vouches for. */
  generator(options: GeneratorOptions): Generator;
  /** Snowflake IDs on a slot that firnd lends; several servers must share one store. */
  lease(urls: string | URL | (string | URL)[], options?: ServerOptions): Promise<Lease>;

  /** Read a text or number as one kind ("snowflake" unless given). Strict: anything else throws. */
  read(id: string | bigint, kind?: string, layout?: string): Reading;
  /** All that a text can be, best first; may be empty. */
  inspect(id: string | bigint): Reading[];
  /** When a 64-bit ID was made. */
  time(id: string | bigint, layout?: string): Date;
  encode(value: bigint, codec: string, bits?: 64 | 128): string;
  decode(text: string, codec: string, bits?: 64 | 128): bigint;
  /** A value in another encoding: a codec's name, "uuid" or "ulid". */
  convert(text: string, from: string, to: string, bits?: 64 | 128): string;
  layout(text?: string): Layout;
  /** Fields that are left out are 0. */
  compose(parts: { [K in keyof Parts]?: bigint | number }, layout?: string): bigint;
  decompose(id: bigint, layout?: string): Parts;
}

export interface FirnOptions extends ServerOptions {
  /** IDs per block, 100 unless given. */
  ahead?: number;
  /** No ID is handed out when it may be older; 1,000 unless given. */
  freshMs?: number;
}

/** A client of firnd over HTTP: IDs made by the server. Several URLs: the next is asked when one does not answer. */
export class Firn {
  constructor(urls: string | URL | (string | URL)[], options?: FirnOptions);
  /** A Snowflake ID from a block that was fetched ahead. */
  next(): Promise<bigint>;
  /** Many, of one request: 1 to 100,000. */
  nextN(n: number): Promise<bigint[]>;
  /** The next number of a sequence. The same key gets the same number again. */
  ticket(sequence?: string, key?: string): Promise<bigint>;
  /** One ID of any kind as text, with the parameters of /generate. */
  text(kind: string, params?: Record<string, string>): Promise<string>;
}
