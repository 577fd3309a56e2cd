-- S8: the time of what is one's own.
if redis.call('get', KEYS[1]) == ARGV[1] then
  local left = redis.call('ttl', KEYS[1])
  if left > 0 then return left end
end
return 0
