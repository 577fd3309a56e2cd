-- S4: take what is free or one's own; else an error.
if redis.call('exists', KEYS[1]) == 0 or redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
end
return redis.error_reply('LOCKED somebody has it')
