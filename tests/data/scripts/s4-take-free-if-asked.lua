-- S4: take what is free, if that is asked for, or one's own.
if (redis.call('exists', KEYS[1]) == 0 and ARGV[4] == '1') or redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
