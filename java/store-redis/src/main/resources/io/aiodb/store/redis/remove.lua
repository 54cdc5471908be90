-- Deletes some of the rows of a table that was emptied or dropped.
--   KEYS: what the names of all keys begin with
--   ARGV: marker; generation
-- Answers with `yes` if there are more.
local prefix, generation = KEYS[1], ARGV[2]
if redis.call('GET', prefix .. 'store') ~= ARGV[1] then
    return redis.error_reply('GONE')
end
local index = prefix .. 'index:' .. generation
local keys = redis.call('ZRANGE', index, 0, 999)
if #keys == 0 then
    redis.call('SREM', prefix .. 'removed', generation)
    return ''
end
local rows = {}
for number, key in ipairs(keys) do
    rows[number] = prefix .. 'row:' .. generation .. ':' .. key
end
redis.call('UNLINK', unpack(rows))
redis.call('ZREMRANGEBYRANK', index, 0, #keys - 1)
return 'yes'
