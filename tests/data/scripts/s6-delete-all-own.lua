-- S6: delete those that are one's own, in a database that is tried to be selected, and count them.
local db = redis.pcall('SELECT', tonumber(ARGV[4]))
local n = 0
for i = 1, #KEYS do
  if redis.call('get', KEYS[i]) == ARGV[1] then
    redis.pcall('del', KEYS[i])
    n = n + 1
  end
end
return n
