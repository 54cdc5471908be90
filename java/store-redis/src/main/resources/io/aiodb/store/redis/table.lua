-- Makes, empties or drops a table. Rows that are left behind are deleted later, see remove.lua.
--   KEYS: what the names of all keys begin with
--   ARGV: marker; `create`, `truncate` or `drop`; name; the table's generation as the caller knows it, empty for `create`
-- Answers with the number of this change and the table's new generation.
local prefix, name = KEYS[1], ARGV[3]
if redis.call('GET', prefix .. 'store') ~= ARGV[1] then
    return redis.error_reply('GONE')
end
if (redis.call('HGET', prefix .. 'tables', name) or '') ~= ARGV[4] then
    return redis.error_reply('GONE')
end
local generation = ''
if ARGV[2] ~= 'create' then
    redis.call('SADD', prefix .. 'removed', ARGV[4])
end
if ARGV[2] == 'drop' then
    redis.call('HDEL', prefix .. 'tables', name)
else
    generation = tostring(redis.call('INCR', prefix .. 'generation'))
    redis.call('HSET', prefix .. 'tables', name, generation)
end
return {tostring(redis.call('INCR', prefix .. 'sequence')), generation}
