// A reward worker: takes the lease and its token by an ordinary Redis client, and shows the token to the database.
//
// node worker.js PLAYER EVENT AMOUNT TTL_MS WORK_MS
//   REDIS_URL   the lease store, such as redis://127.0.0.1:7420
//   PGHOST, PGUSER, PGDATABASE   as libpq reads them
// Prints one line: granted, replayed, stale or held. WORK_MS stands for the work, and for whatever pauses it.
"use strict";

const { randomUUID } = require("node:crypto");
const Redis = require("ioredis");
const { Client } = require("pg");

const [player, event, amount, ttlMs, workMs] = process.argv.slice(2);
const lease = `lock:reward:player-${player}`;
// Unique for every try: the store tells the token of whoever holds the lease under this very value.
const owner = randomUUID();

async function main() {
  const redis = new Redis(process.env.REDIS_URL);
  const db = new Client();
  await db.connect();
  let token = null;
  try {
    // In one pipeline: the token belongs to the grant of the SET beside it.
    const [[setError, granted], [tokenError, issued]] = await redis
      .pipeline()
      .set(lease, owner, "PX", ttlMs, "NX")
      .call("LEASE.TOKEN", lease, owner)
      .exec();
    if (setError || tokenError) throw setError || tokenError;
    if (granted !== "OK") return "held";
    token = issued;

    await new Promise((resolve) => setTimeout(resolve, Number(workMs)));

    // The fence is checked in the transaction that writes, so that no pause in between matters.
    await db.query("BEGIN");
    try {
      const { rows } = await db.query("SELECT outcome FROM reward_grant_once($1, $2, $3, $4, $5)", [
        lease, String(token), player, event, amount,
      ]);
      await db.query("COMMIT");
      return rows[0].outcome;
    } catch (error) {
      await db.query("ROLLBACK");
      // FN001: somebody else holds the lease, or did since. It is not ours to retry.
      if (error.code === "FN001") return "stale";
      throw error;
    }
  } finally {
    // By token: a later holder's lease is untouched.
    if (token !== null) await redis.call("LEASE.RELEASE", lease, String(token)).catch(() => {});
    redis.disconnect();
    await db.end();
  }
}

main().then(
  (outcome) => console.log(outcome),
  (error) => {
    console.error(error);
    process.exitCode = 1;
  },
);
