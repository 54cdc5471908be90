-- Takes the store for one opener. What earlier openers send from now on is refused by the other scripts.
--   KEYS: what the names of all keys begin with
--   ARGV: format; identity; `yes` if the server has had the store; the marker that the opener left, or empty
-- Answers with the new marker and the number of the last change.
local prefix, format, id = KEYS[1], ARGV[1], ARGV[2]
local marker = redis.call('GET', prefix .. 'store')
local epoch = 0
if marker then
    local its_format, its_id, its_epoch = string.match(marker, '^(%d+) (%S+) (%d+)$')
    if not its_format then
        return redis.error_reply('FOREIGN')
    elseif its_id ~= id then
        return redis.error_reply('OTHER ' .. its_id)
    elseif its_format ~= format then
        return redis.error_reply('FORMAT ' .. its_format)
    elseif ARGV[4] ~= '' and marker ~= ARGV[4] then
        return redis.error_reply('TAKEN')
    end
    epoch = tonumber(its_epoch)
elseif ARGV[3] == 'yes' then
    return redis.error_reply('LOST')
end
marker = string.format('%s %s %d', format, id, epoch + 1)
redis.call('SET', prefix .. 'store', marker)
return {marker, redis.call('GET', prefix .. 'sequence') or '0'}
