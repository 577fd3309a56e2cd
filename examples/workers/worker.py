"""A reward worker: takes the lease and its token by an ordinary Redis client, and shows the token to the database.

python worker.py PLAYER EVENT AMOUNT TTL_MS WORK_MS
    REDIS_URL   the lease store, such as redis://127.0.0.1:7420
    PGHOST, PGUSER, PGDATABASE   as libpq reads them
Prints one line: granted, replayed, stale or held. WORK_MS stands for the work, and for whatever pauses it.
"""

import os
import sys
import time
import uuid

import psycopg
import redis

# Somebody else holds the lease, or did since. It is not ours to retry.
STALE = "FN001"


def work(player: int, event: str, amount: int, ttl_ms: int, work_ms: int) -> str:
    lease = f"lock:reward:player-{player}"
    # Unique for every try: the store tells the token of whoever holds the lease under this very value.
    owner = str(uuid.uuid4())
    store = redis.Redis.from_url(os.environ["REDIS_URL"])
    token = None
    try:
        # In one pipeline: the token belongs to the grant of the SET beside it.
        pipeline = store.pipeline(transaction=False)
        pipeline.set(lease, owner, px=ttl_ms, nx=True)
        pipeline.execute_command("LEASE.TOKEN", lease, owner)
        granted, issued = pipeline.execute()
        if not granted:
            return "held"
        token = issued
        time.sleep(work_ms / 1000)
        # The fence is checked in the transaction that writes, so that no pause in between matters.
        with psycopg.connect("") as db:
            row = db.execute(
                "SELECT outcome FROM reward_grant_once(%s, %s, %s, %s, %s)", (lease, token, player, event, amount)
            ).fetchone()
            return row[0]
    except psycopg.Error as error:
        if error.sqlstate == STALE:
            return "stale"
        raise
    finally:
        # By token: a later holder's lease is untouched.
        if token is not None:
            store.execute_command("LEASE.RELEASE", lease, token)
        store.close()


if __name__ == "__main__":
    print(work(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])))
