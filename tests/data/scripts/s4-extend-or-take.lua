-- S4: extend what is one's own, take what is free.
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('pexpire', KEYS[1], ARGV[2])
elseif redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then
  return 1
else
  return 0
end
