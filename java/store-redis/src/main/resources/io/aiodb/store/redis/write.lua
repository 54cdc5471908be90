-- Applies a batch.
--   KEYS: what the names of all keys begin with
--   ARGV: marker; `yes` to answer with what was there before; the most bytes of that; the longest value;
--         then for each operation four: kind, generation of the table, key, value
-- Answers with the number of this change, `yes` if what was there before is too much, and for each row that was changed
-- three: generation, key, value (none if the row was absent).
local prefix = KEYS[1]
if redis.call('GET', prefix .. 'store') ~= ARGV[1] then
    return redis.error_reply('GONE')
end
local keep, room, longest = ARGV[2] == 'yes', tonumber(ARGV[3]), tonumber(ARGV[4])

-- Nothing is changed where an append would make a value too long.
local lengths = {}
for at = 5, #ARGV, 4 do
    local kind, row = ARGV[at], ARGV[at + 1] .. ':' .. ARGV[at + 2]
    if kind == 'append' then
        local length = (lengths[row] or redis.call('STRLEN', prefix .. 'row:' .. row)) + #ARGV[at + 3]
        if length > longest then
            return redis.error_reply('LONG ' .. length)
        end
        lengths[row] = length
    elseif kind == 'put' then
        lengths[row] = #ARGV[at + 3]
    elseif kind == 'delete' then
        lengths[row] = 0
    end
end

local answer, seen, too_much = {'', ''}, {}, false
local function keep_before(generation, key, row)
    if not keep or too_much or seen[row] then
        return
    end
    seen[row] = true
    local value = redis.call('GET', row)
    room = room - #key - (value and #value or 0)
    if room < 0 then
        too_much = true
        answer = {'', 'yes'}
        return
    end
    answer[#answer + 1] = generation
    answer[#answer + 1] = key
    answer[#answer + 1] = value
end

local function delete_range(generation, from, to)
    local index = prefix .. 'index:' .. generation
    local first = from == '' and '-' or '[' .. from
    local last = to == '' and '+' or '(' .. to
    repeat
        local keys = redis.call('ZRANGEBYLEX', index, first, last, 'LIMIT', 0, 1000)
        if #keys > 0 then
            local rows = {}
            for number, key in ipairs(keys) do
                rows[number] = prefix .. 'row:' .. generation .. ':' .. key
                keep_before(generation, key, rows[number])
            end
            redis.call('UNLINK', unpack(rows))
            redis.call('ZREMRANGEBYLEX', index, first, '[' .. keys[#keys])
        end
    until #keys < 1000
end

for at = 5, #ARGV, 4 do
    local kind, generation, key, value = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    if kind == 'range' then
        delete_range(generation, key, value)
    else
        local row = prefix .. 'row:' .. generation .. ':' .. key
        keep_before(generation, key, row)
        if kind == 'put' then
            redis.call('SET', row, value)
            redis.call('ZADD', prefix .. 'index:' .. generation, 0, key)
        elseif kind == 'delete' then
            if redis.call('UNLINK', row) == 1 then
                redis.call('ZREM', prefix .. 'index:' .. generation, key)
            end
        elseif redis.call('APPEND', row, value) == #value then
            -- The row may be new.
            redis.call('ZADD', prefix .. 'index:' .. generation, 0, key)
        end
    end
end
answer[1] = tostring(redis.call('INCR', prefix .. 'sequence'))
return answer
