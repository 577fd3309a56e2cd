-- An error in the middle keeps what was done before it.
redis.call('set', KEYS[1], ARGV[1])
redis.call('pexpire', KEYS[1], 'soon')
return redis.call('set', KEYS[2], ARGV[1])
