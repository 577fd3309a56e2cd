-- S8: the time of what is one's own, else an error.
local seen = redis.call('get', KEYS[1])
if seen == ARGV[1] then return redis.call('ttl', KEYS[1]) end
return redis.error_reply('no')
