// pg-boss (https://pgboss.io), with batch handlers, woken by NOTIFY.

import { chunks, packages, play, sleep } from "./roles.mjs";

const { PgBoss } = packages("pg-boss");
const fetching = { batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };

await play((place) => {
  const boss = new PgBoss({ connectionString: place, useListenNotify: true });
  boss.on("error", (error) => console.error(error));
  return {
    connect: () => boss.start(),
    async prepare() {
      await boss.start();
      await boss.createQueue("bench", { notify: true });
    },
    async fill(n, delay) {
      const startAfter = delay || undefined;
      for (const size of chunks(n, 1000)) {
        await boss.insert("bench", Array.from({ length: size }, () => ({ data: { sent: 0 }, startAfter })));
      }
    },
    put: (sent) => boss.send("bench", { sent }),
    async work(job) {
      await boss.start();
      await boss.work("bench", fetching, async (jobs) => {
        for (const one of jobs) {
          const lasts = job(one.data.sent);
          if (lasts) await sleep(lasts);
        }
      });
    },
  };
});
