-- S7: with functions of its own: all are one's own, or nothing is done.
local function same(list)
  for i, _ in ipairs(KEYS) do
    if list[i] ~= ARGV[1] then return false end
  end
  return true
end
if not same(redis.call('mget', unpack(KEYS))) then return false end
for _, key in ipairs(KEYS) do redis.call('pexpire', key, ARGV[2]) end
return redis.status_reply('OK')
