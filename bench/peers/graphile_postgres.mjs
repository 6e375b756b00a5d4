// Graphile Worker (https://worker.graphile.org), batched as "Performance" in its documentation advises.

import { chunks, packages, play, sleep } from "./roles.mjs";

const { makeWorkerUtils, run, Logger } = packages("graphile-worker");
const logger = new Logger(() => () => {});
const worker = { concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };

await play((place) => {
  let utils;
  return {
    connect: async () => { utils ??= await makeWorkerUtils({ connectionString: place, logger }); },
    async prepare() {
      await this.connect();
      await utils.migrate();
    },
    async fill(n, delay) {
      const runAt = new Date(Date.now() + delay * 1000);
      for (const size of chunks(n, 1000)) {
        await utils.addJobs(Array.from({ length: size }, () => ({ identifier: "bench", payload: { sent: 0 }, runAt })));
      }
    },
    put: (sent) => utils.addJob("bench", { sent }),
    async work(job) {
      const bench = (payload) => {
        const lasts = job(payload.sent);
        return lasts ? sleep(lasts) : undefined;
      };
      const preset = { worker: { ...worker, connectionString: place, maxPoolSize: 26, logger } };
      await (await run({ preset, taskList: { bench } })).promise;
    },
  };
});
