"""redis-py's Lock and asyncio Lock against this server: acquire, contend, extend, release, a lost lease.

LEASE_NODES has a line for each node: its client address, its admin address, its process. With three nodes everything
goes through a follower, and the leader is killed on the way.
"""

import asyncio
import json
import os
import signal
import time
import urllib.request
import uuid

import redis
import redis.asyncio
from redis.exceptions import LockError, LockNotOwnedError

# Within this a cluster has a leader again, and a condition that is waited for must hold.
SOON_S = 30


def nodes():
    for line in os.environ["LEASE_NODES"].splitlines():
        resp, admin, pid = line.split()
        host, port = resp.rsplit(":", 1)
        yield {"host": host, "port": int(port), "admin": admin, "pid": int(pid)}


NODES = list(nodes())


def wait_until(what, condition):
    end = time.monotonic() + SOON_S
    while time.monotonic() < end:
        try:
            found = condition()
        except (OSError, redis.RedisError):
            found = None
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {SOON_S} s: {what}")


def leader_and_follower():
    """Who leads, and who does not and serves."""
    if len(NODES) == 1:
        return NODES[0], NODES[0]

    def found():
        with urllib.request.urlopen(f"http://{NODES[0]['admin']}/v1/cluster", timeout=2) as answer:
            leader = json.load(answer)["leader"]
        return leader and (NODES[leader - 1], NODES[leader % 3])

    return wait_until("a leader", found)


def client(node, **options):
    return redis.Redis(host=node["host"], port=node["port"], decode_responses=True, **options)


def name():
    return f"lock:{uuid.uuid4()}"


def expect(error, call):
    try:
        call()
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


def commands(node):
    for protocol in (2, 3):
        c = client(node, protocol=protocol, db=protocol, client_name="test")
        key = name()
        assert c.set(key, "me", nx=True, px=60000) is True
        assert c.set(key, "you", nx=True, px=60000) is None
        assert c.execute_command("LEASE.TOKEN", key, "me") > 0
        assert 0 < c.pttl(key) <= 60000
        with c.pipeline(transaction=True) as pipe:
            pipe.get(key)
            pipe.pexpire(key, 70000)
            pipe.exists(key)
            assert pipe.execute() == ["me", True, 1]
        assert c.execute_command("SET", key, "me", "IFEQ", "me", "PX", 60000) in (True, "OK")
        assert c.execute_command("DELEX", key, "IFEQ", "you") == 0
        assert c.execute_command("DELEX", key, "IFEQ", "me") == 1
        assert c.get(key) is None
        c.close()


def messages(node):
    c = client(node)
    listener = c.pubsub()
    key = name()
    listener.subscribe(f"lease:{key}", "news")
    heard = []

    def hear(wanted):
        def found():
            message = listener.get_message(timeout=1)
            if message and message["type"] == "message":
                heard.append(message["data"])
            return any(text.startswith(wanted) for text in heard)

        wait_until(f"a message {wanted}", found)

    wait_until("both are subscribed", lambda: c.pubsub_numsub("news") == [("news", 1)])
    c.publish("news", "hello")
    hear("hello")
    c.set(key, "me", px=30)
    hear("granted")
    hear("ended")
    listener.close()


def lock(node):
    c = client(node)
    key = name()
    first, second = c.lock(key, timeout=60), c.lock(key, timeout=60)
    assert first.acquire(blocking=False)
    assert not second.acquire(blocking=False)
    assert first.owned() and first.locked() and not second.owned()
    assert first.extend(10)
    assert c.pttl(key) > 60000
    assert first.extend(30, replace_ttl=True)
    assert c.pttl(key) <= 30000
    assert first.reacquire()
    first.release()
    assert second.acquire(blocking=True, blocking_timeout=5)
    second.release()
    assert c.get(key) is None
    expect(LockError, second.release)


def lost_lock(node):
    c = client(node)
    key = name()
    first, second = c.lock(key, timeout=0.05), c.lock(key, timeout=60)
    assert first.acquire(blocking=False)
    assert second.acquire(blocking=True, blocking_timeout=SOON_S), "it ran out, and somebody else has it"
    expect(LockNotOwnedError, lambda: first.extend(10))
    expect(LockNotOwnedError, first.release)
    assert second.owned()
    second.release()


def lock_without_end(node):
    c = client(node)
    held = c.lock(name())
    assert held.acquire(blocking=False)
    assert c.pttl(held.name) == -1
    held.release()


async def asyncio_lock(node):
    c = redis.asyncio.Redis(host=node["host"], port=node["port"])
    key = name()
    first, second = c.lock(key, timeout=60), c.lock(key, timeout=60)
    assert await first.acquire(blocking=False)
    assert not await second.acquire(blocking=False)
    assert await first.extend(10)
    await first.release()
    async with second:
        assert await second.owned()
    assert await c.get(key) is None
    await c.aclose()


def leader_killed(leader, follower):
    """What was acknowledged before the leader died is there after it, by the same token."""
    c = client(follower)
    key = name()
    assert c.set(key, "me", nx=True, px=120000) is True
    token = c.execute_command("LEASE.TOKEN", key, "me")
    os.kill(leader["pid"], signal.SIGKILL)
    wait_until("somebody leads", lambda: c.get(key) == "me")
    assert c.execute_command("LEASE.TOKEN", key, "me") == token
    assert c.set(key, "you", nx=True, px=60000) is None
    assert c.set(name(), "me", nx=True, px=60000) is True
    return key


def run_all(node):
    for test in (commands, messages, lock, lost_lock, lock_without_end):
        test(node)
        print("ok", test.__name__, flush=True)
    asyncio.run(asyncio_lock(node))
    print("ok", asyncio_lock.__name__, flush=True)


def main():
    leader, follower = leader_and_follower()
    run_all(follower)
    if leader is not follower:
        leader_killed(leader, follower)
        print("ok", leader_killed.__name__, flush=True)
        run_all(follower)


main()
