-- S8: who holds it, and for how long still.
return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}
