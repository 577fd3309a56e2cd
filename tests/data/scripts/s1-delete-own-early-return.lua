-- S1: delete what is one's own; what is missing and what is another's is told at once.
local held = redis.call("get", KEYS[1])
if not held or held ~= ARGV[1] then
  return 0
end
redis.call("unlink", KEYS[1])
return 1
