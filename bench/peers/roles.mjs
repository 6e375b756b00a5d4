// What every peer on Node.js is asked by the bench, as bench/roles.py is for those on Python:
// `node PEER.mjs ROLE PART`, with the packages in the folder that BENCH_PACKAGES names.

import { openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const TICK = 5; // milliseconds between two looks at the count
const HOLDS_FOR = 600;

export const packages = createRequire(join(process.env.BENCH_PACKAGES, "package.json"));
export const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
export const chunks = (n, size) => Array.from({ length: Math.ceil(n / size) }, (_, i) => Math.min(size, n - i * size));

/** Monotonic seconds: CLOCK_MONOTONIC, the same for every process. */
export const now = () => Number(process.hrtime.bigint()) / 1e9;

/** Play the part: *queue* has prepare, connect, fill(n, delay), put(sent) and work(job). */
export async function play(make) {
  const [role, told] = process.argv.slice(2);
  const part = JSON.parse(told);
  const queue = make(part.place);
  if (role === "prepare") await queue.prepare();
  if (role === "work") return queue.work(part.job === "count" ? counting(part) : noting(part));
  if (role === "fill") await timed(queue, part.n, () => queue.fill(part.n, part.delay));
  if (role === "put") {
    await queue.connect();
    if (part.n > 1) await queue.put(now()); // the first one is slower in every client
    await timed(queue, part.n - 1 || 1, async (n) => {
      for (let i = 0; i < n; i += 1) {
        await queue.put(now());
        if (part.pause) await sleep(part.pause);
      }
    });
  }
  process.exit(0);
}

async function timed(queue, n, enqueue) {
  await queue.connect();
  const began = now();
  await enqueue(n);
  writeSync(1, JSON.stringify({ n, seconds: now() - began }) + "\n");
}

/** A no-op that counts; the count, the time of the first job and the processor time since then are in a file. */
function counting(part) {
  const file = openSync(join(part.folder, `counted-${process.pid}`), "w");
  let count = 0, told = 0, first = 0, cpu = 0, timer, quiet = 0;
  const busy = () => { const used = process.cpuUsage(); return (used.user + used.system) / 1e6; };
  const tell = () => {
    quiet = told === count ? quiet + 1 : 0;
    if (quiet > 50) { clearInterval(timer); timer = undefined; return; }
    if (told === count) return;
    told = count;
    const record = Buffer.alloc(24);
    [told, first, busy() - cpu].forEach((value, i) => record.writeDoubleLE(value, i * 8));
    writeSync(file, record, 0, 24, 0);
  };
  return () => {
    if (count === 0) { first = now(); cpu = busy(); }
    count += 1;
    timer ??= setInterval(tell, TICK);
    return 0;
  };
}

/** A no-op that writes down what was enqueued, and when it started; one that holds never comes to an end. */
function noting(part) {
  const file = openSync(join(part.folder, part.file), "a");
  return (sent) => {
    const record = Buffer.alloc(16);
    record.writeDoubleLE(sent, 0);
    record.writeDoubleLE(now(), 8);
    writeSync(file, record);
    return part.job === "hold" && sent > 0 ? HOLDS_FOR : 0;
  };
}
