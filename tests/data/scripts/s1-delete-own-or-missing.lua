-- S1: delete what is one's own; missing is another answer than somebody else's.
local held = redis.call('get', KEYS[1])
if held == false then
  return -1
elseif held == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0
