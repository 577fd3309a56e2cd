-- S2: extend what is one's own, and answer a boolean.
if redis.call('get', KEYS[1]) ~= ARGV[1] then
  return false
end
redis.call('pexpire', KEYS[1], ARGV[2])
return true
