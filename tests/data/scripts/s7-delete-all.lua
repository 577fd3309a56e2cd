-- S7: all are one's own and are deleted, or nothing is done.
local seen = redis.call('mget', unpack(KEYS))
for i = 1, #KEYS do
  if seen[i] ~= ARGV[1] then return false end
end
redis.call('del', unpack(KEYS))
return redis.status_reply('OK')
