-- S3: store the same value again, and look at what came back.
if redis.call("get", KEYS[1]) ~= ARGV[1] then
  return 0
elseif redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) ~= nil then
  return 1
else
  return 0
end
