-- Reads some rows of a range at one moment.
--   KEYS: what the names of all keys begin with
--   ARGV: marker; generation of the table; `forward` or `backward`; lower and upper bound as ZRANGEBYLEX takes them;
--         the most rows, the most bytes; `yes` for keys only
-- Answers with the number of the last change, `yes` if the range goes on, and for each row its key and value.
local prefix, generation, most = KEYS[1], ARGV[2], tonumber(ARGV[6])
if redis.call('GET', prefix .. 'store') ~= ARGV[1] then
    return redis.error_reply('GONE')
end
local index = prefix .. 'index:' .. generation
local keys
if ARGV[3] == 'forward' then
    keys = redis.call('ZRANGEBYLEX', index, ARGV[4], ARGV[5], 'LIMIT', 0, most + 1)
else
    keys = redis.call('ZREVRANGEBYLEX', index, ARGV[5], ARGV[4], 'LIMIT', 0, most + 1)
end
local answer = {redis.call('GET', prefix .. 'sequence') or '0', ''}
local room = tonumber(ARGV[7])
for number, key in ipairs(keys) do
    if number > most or room <= 0 then
        answer[2] = 'yes'
        break
    end
    local value = ''
    if ARGV[8] ~= 'yes' then
        value = redis.call('GET', prefix .. 'row:' .. generation .. ':' .. key)
        if not value then
            return redis.error_reply('ROW')
        end
    end
    room = room - #key - #value
    answer[#answer + 1] = key
    answer[#answer + 1] = value
end
return answer
