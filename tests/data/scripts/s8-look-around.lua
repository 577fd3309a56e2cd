-- S8: what else can be seen of keys.
return {redis.call('exists', unpack(KEYS)), redis.call('strlen', KEYS[1]), redis.call('type', KEYS[2]), #ARGV}
