-- S9: delete what is one's own, and tell who waits.
if redis.call('get', KEYS[1]) == ARGV[1] and redis.call('unlink', KEYS[1]) == 1 then
  redis.call('publish', ARGV[3], KEYS[1])
  return true
end
return false
