-- S7: take all that are free, or all that begin with one's own token.
local pairs_of = {}
for _, key in ipairs(KEYS) do
  table.insert(pairs_of, key)
  table.insert(pairs_of, ARGV[1])
end
local function mine()
  local len = tonumber(#ARGV[1])
  for _, key in ipairs(KEYS) do
    if redis.call('getrange', key, 0, len - 1) ~= string.sub(ARGV[1], 1, len) then return false end
  end
  return true
end
if redis.call('msetnx', unpack(pairs_of)) ~= 1 then
  if mine() == false then return false end
  redis.call('mset', unpack(pairs_of))
end
for _, key in ipairs(KEYS) do redis.call('pexpire', key, ARGV[2]) end
return redis.status_reply('OK')
