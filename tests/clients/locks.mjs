// ioredis, node-redis, redlock 4 and 5, redis-semaphore's Mutex against this server: acquire, contend, extend, release, a
// lost lease.
//
// LEASE_NODES has a line for each node: its client address, its admin address, its process. With three nodes everything
// goes through a follower, and the leader is killed on the way.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { setTimeout as pause } from 'node:timers/promises'

const require = createRequire(import.meta.url)
const SOON_MS = 30_000

const nodes = process.env.LEASE_NODES.trim().split('\n').map((line) => {
  const [resp, admin, pid] = line.split(' ')
  const [host, port] = resp.split(':')
  return { host, port: Number(port), admin, pid: Number(pid) }
})

async function waitUntil(what, condition) {
  const end = Date.now() + SOON_MS
  let last
  while (Date.now() < end) {
    try {
      const found = await condition()
      if (found) return found
    } catch (error) {
      last = error
    }
    await pause(20)
  }
  throw new Error(`not within ${SOON_MS} ms: ${what} (${last})`)
}

async function leaderAndFollower() {
  if (nodes.length === 1) return [nodes[0], nodes[0]]
  return waitUntil('a leader', async () => {
    const { leader } = await (await fetch(`http://${nodes[0].admin}/v1/cluster`)).json()
    return leader && [nodes[leader - 1], nodes[leader % nodes.length]]
  })
}

const name = () => `lock:${randomUUID()}`

async function ioredis(Redis, node) {
  const c = new Redis({ host: node.host, port: node.port, db: 3, connectionName: 'test', retryStrategy: () => 50 })
  const key = name()
  assert.equal(await c.set(key, 'me', 'PX', 60000, 'NX'), 'OK')
  assert.equal(await c.set(key, 'you', 'PX', 60000, 'NX'), null)
  assert.ok((await c.call('LEASE.TOKEN', key, 'me')) > 0)
  assert.deepEqual(await c.multi().get(key).pexpire(key, 70000).exec(), [[null, 'me'], [null, 1]])
  assert.equal(await c.call('SET', key, 'me', 'IFEQ', 'me', 'PX', '60000'), 'OK')
  assert.equal(await c.call('DELIFEQ', key, 'you'), 0)
  assert.equal(await c.call('DELIFEQ', key, 'me'), 1)
  assert.equal(await c.set(key, 'me', 'PX', 30, 'NX'), 'OK')
  await waitUntil('it runs out and is taken', async () => (await c.set(key, 'you', 'PX', 60000, 'NX')) === 'OK')
  assert.equal(await c.call('DELIFEQ', key, 'me'), 0)
  await c.quit()
}

async function nodeRedis(node, RESP) {
  const { createClient } = require('redis')
  const c = createClient({ socket: { host: node.host, port: node.port }, database: 4, name: 'test', RESP })
  await c.connect()
  const key = name()
  assert.equal(await c.set(key, 'me', { NX: true, PX: 60000 }), 'OK')
  assert.equal(await c.set(key, 'you', { NX: true, PX: 60000 }), null)
  assert.ok((await c.sendCommand(['LEASE.TOKEN', key, 'me'])) > 0)
  assert.deepEqual(await c.multi().get(key).pExpire(key, 70000).exec(), ['me', 1])
  assert.equal(await c.sendCommand(['DELEX', key, 'IFEQ', 'me']), 1)
  const listener = c.duplicate()
  await listener.connect()
  const heard = []
  await listener.subscribe('news', (message) => heard.push(message))
  await c.publish('news', 'hello')
  await waitUntil('a message', () => heard.includes('hello'))
  await listener.close()
  await c.close()
}

async function redlock4(Redis, node) {
  const c = new Redis({ host: node.host, port: node.port })
  const Redlock = require('redlock4')
  const once = new Redlock([c], { retryCount: 0 })
  const patient = new Redlock([c], { retryCount: 1000, retryDelay: 20, retryJitter: 5 })
  const keys = [name(), name()]
  const held = await once.lock(keys, 60000)
  await assert.rejects(once.lock([keys[1]], 60000))
  await held.extend(70000)
  assert.ok((await c.pttl(keys[0])) > 60000)
  await held.unlock()
  const short = await once.lock(keys, 50)
  const next = await patient.lock(keys, 60000)
  await assert.rejects(short.extend(1000))
  await next.unlock()
  assert.equal(await c.exists(...keys), 0)
  await c.quit()
}

async function redlock5(Redis, node) {
  const c = new Redis({ host: node.host, port: node.port })
  const Redlock = require('redlock5').default
  const once = new Redlock([c], { retryCount: 0 })
  once.on('error', () => {})
  const keys = [name(), name()]
  let held = await once.acquire(keys, 60000)
  await assert.rejects(once.acquire([keys[0]], 60000))
  held = await held.extend(70000)
  assert.ok((await c.pttl(keys[0])) > 60000)
  await held.release()
  const short = await once.acquire(keys, 50)
  const next = await waitUntil('it runs out', () => once.acquire(keys, 60000))
  await assert.rejects(short.release())
  await next.release()
  assert.equal(await c.exists(...keys), 0)
  await c.quit()
}

async function semaphoreMutex(Redis, node) {
  const c = new Redis({ host: node.host, port: node.port })
  const { Mutex } = require('redis-semaphore')
  const key = name()
  const options = { lockTimeout: 60000, refreshInterval: 0 }
  const first = new Mutex(c, key, options)
  const second = new Mutex(c, key, { ...options, acquireAttemptsLimit: 1 })
  await first.acquire()
  assert.equal(await second.tryAcquire(), false)
  await first.release()
  await second.acquire()
  await second.release()
  const lost = new Mutex(c, key, { lockTimeout: 60, refreshInterval: 0 })
  await lost.acquire()
  await first.acquire()
  await lost.release()
  assert.equal(await second.tryAcquire(), false, 'a late release takes nothing from its successor')
  await first.release()
  await c.quit()
}

async function leaderKilled(Redis, leader, follower) {
  const c = new Redis({ host: follower.host, port: follower.port })
  const key = name()
  assert.equal(await c.set(key, 'me', 'PX', 120000, 'NX'), 'OK')
  const token = await c.call('LEASE.TOKEN', key, 'me')
  process.kill(leader.pid, 'SIGKILL')
  await waitUntil('somebody leads', async () => (await c.get(key)) === 'me')
  assert.equal(await c.call('LEASE.TOKEN', key, 'me'), token)
  assert.equal(await c.set(key, 'you', 'PX', 60000, 'NX'), null)
  await c.quit()
}

const Redis5 = require('ioredis').Redis
const Redis6 = require('ioredis6').Redis
const [leader, follower] = await leaderAndFollower()
const tests = {
  'ioredis 5': () => ioredis(Redis5, follower),
  'ioredis 6': () => ioredis(Redis6, follower),
  'node-redis RESP2': () => nodeRedis(follower, 2),
  'node-redis RESP3': () => nodeRedis(follower, 3),
  'redlock 4': () => redlock4(Redis5, follower),
  'redlock 5': () => redlock5(Redis5, follower),
  'redis-semaphore': () => semaphoreMutex(Redis5, follower),
}
const all = async () => {
  for (const [title, test] of Object.entries(tests)) {
    await test()
    console.log('ok', title)
  }
}
await all()
if (leader !== follower) {
  await leaderKilled(Redis5, leader, follower)
  console.log('ok a leader that is killed')
  await all()
}
