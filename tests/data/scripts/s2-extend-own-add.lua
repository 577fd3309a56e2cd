-- S2: extend what is one's own, to a time or by a time; a key without one is left alone.
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call('pttl', KEYS[1])
if left < 0 then return 0 end
local more = ARGV[2]
if ARGV[4] == '0' then more = ARGV[2] + left end
redis.call('pexpire', KEYS[1], more)
return 1
