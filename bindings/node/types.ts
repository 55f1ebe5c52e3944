// Uses every part of firn.d.ts; the test compiles it with tsc --strict and never runs it.
import { Firn, FirnError, load, type Ids, type Lease, type Reading } from "firn-ids";

const ids: Ids = await load(new URL("firn.wasm", import.meta.url));
const id: bigint = ids.generator({ slot: 7, layout: "twitter", policy: "error" }).next();
const many: BigUint64Array = ids.generator({ slot: 8 }).fill(10);
const texts: string[] = [ids.uuid4(), ids.uuid7(), ids.ulid(), ids.ksuid(), ids.xid(), ids.objectid(), ids.nanoid(), ids.cuid2()];
const typeid: string = ids.mint("typeid", { prefix: "user" }).next();
const readings: Reading[] = ids.inspect(id);
const made: Date | null = ids.read(typeid, "typeid").time;
const seq: bigint = ids.decompose(ids.compose({ time: 1, node: 2n })).seq;
const value: bigint = ids.decode(ids.encode(id, "base62"), "base62");
const ulid: string = ids.convert(ids.uuid7(), "uuid", "ulid");
const end: Date = ids.layout("firn").end;
const lease: Lease = await ids.lease(["http://127.0.0.1:9001"], { token: "t" });
const leased: bigint = await lease.next();
const firn = new Firn("http://127.0.0.1:9001", { ahead: 10 });
const fetched: bigint[] = [await firn.next(), await firn.ticket("orders"), ...(await firn.nextN(3))];
const text: string = await firn.text("nanoid", { length: "12" });

// @ts-expect-error: a generator needs a slot
ids.generator({ layout: "firn" });
// @ts-expect-error: an ID is a bigint, not a number
const rounded: number = await firn.next();
try {
  ids.time("x");
} catch (e) {
  if (e instanceof FirnError) console.log(e.code, e.status);
}
export { end, fetched, leased, made, many, readings, rounded, seq, text, texts, ulid, value };
