-- S7: the least time that is left of any.
local least = 0
for _, key in ipairs(KEYS) do
  local left = redis.call('pttl', key)
  if left > 0 and (least == 0 or left < least) then least = left end
end
return least
