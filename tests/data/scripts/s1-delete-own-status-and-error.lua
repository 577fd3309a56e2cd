-- S1: delete what is one's own; missing is a status, another's is an error.
local held = redis.call('get', KEYS[1])
if not held then return redis.status_reply('OK') end
if held == ARGV[1] then return redis.call('del', KEYS[1]) end
return redis.error_reply('not yours')
