-- What scripts see. It gets the host's functions, and gives back how a script is run. Scripts share one state, so nothing that they
-- see may be changed by them: globals and libraries are read through tables that refuse changes.

local host = ...
local _G = _G
local assert, error, ipairs, next, pairs, rawequal, rawget, rawset = assert, error, ipairs, next, pairs, rawequal, rawget, rawset
local select, setmetatable, getmetatable, tostring, type = select, setmetatable, getmetatable, tostring, type
local pcall, xpcall, loadstring, concat = pcall, xpcall, loadstring, table.concat
local create, resume, collectgarbage = coroutine.create, coroutine.resume, collectgarbage

local READ_ONLY = 'Attempt to modify a readonly table'
local globals, locked = {}, setmetatable({}, {__mode = 'k'})

local function lock(values)
  local proxy = setmetatable({}, {
    __index = values,
    __newindex = function() error(READ_ONLY, 2) end,
    __metatable = false,
  })
  locked[proxy] = values
  return proxy
end

-- Nothing of a script goes on that is to stop, not even what it has protected.
local function go_on(...)
  if host.is_stopped() then error('the script is stopped', 0) end
  return ...
end

-- What a script gets of an error: its text, where Redis has one.
local function text_of(problem)
  if type(problem) == 'table' and type(rawget(problem, 'err')) == 'string' then return rawget(problem, 'err') end
  return type(problem) == 'userdata' and host.text(problem) or problem
end

local function message_of(is_right, problem, ...)
  if not is_right then return false, text_of(problem) end
  return is_right, problem, ...
end

function globals.pcall(...) return go_on(message_of(pcall(...))) end

-- The handler runs when what failed has ended. In Lua's own it would run in the place of the error, where nothing looks whether
-- the script is to stop, if that is the error.
local function handled(handler, is_right, problem, ...)
  if is_right then return true, problem, ... end
  return false, select(2, go_on(message_of(pcall(handler, text_of(problem)))))
end

function globals.xpcall(called, handler) return handled(handler, go_on(pcall(called))) end

-- Compiled code is not checked by Lua, so only text is loaded.
function globals.loadstring(text, name)
  if type(text) == 'string' and text:sub(1, 1) == '\27' then return nil, 'only text is loaded' end
  if type(text) ~= 'string' or name ~= nil and type(name) ~= 'string' then return loadstring(text, name) end
  -- Nothing keeps the chunk's name while Lua parses it.
  collectgarbage('stop')
  local loaded, problem = loadstring(text, name)
  collectgarbage('restart')
  if loaded then return loaded end
  return nil, problem
end

function globals.load(reader, name)
  local parts = {}
  repeat
    local part = reader()
    parts[#parts + 1] = part
  until part == nil or part == ''
  return globals.loadstring(concat(parts), name or '=(load)')
end

function globals.pairs(values)
  if not locked[values] then return pairs(values) end
  local copy = {}
  for name, value in pairs(locked[values]) do copy[name] = value end
  return pairs(copy)
end

function globals.rawset(values, name, value)
  if locked[values] or rawequal(values, _G) then error(READ_ONLY, 0) end
  return rawset(values, name, value)
end

-- The state's own collection stays as it is.
function globals.collectgarbage(what)
  return (what == 'count') and collectgarbage('count') or 0
end

for _, name in ipairs({
  'assert', 'error', 'gcinfo', 'getmetatable', 'ipairs', 'next', 'rawequal', 'rawget', 'select', 'setmetatable', 'tonumber',
  'tostring', 'type', 'unpack', '_VERSION',
}) do globals[name] = _G[name] end

local threads = {}
for name, value in pairs(coroutine) do threads[name] = value end

-- Lua bounds the calls inside each other of each coroutine by itself, and their stack is that of the thread.
local MOST_INSIDE = 5
local inside = 0

local function left(...)
  inside = inside - 1
  return go_on(message_of(...))
end

function threads.resume(...)
  if inside >= MOST_INSIDE then return false, 'C stack overflow' end
  inside = inside + 1
  return left(resume(...))
end

local function unwrapped(is_right, problem, ...)
  if is_right then return problem, ... end
  -- The function that was made of the coroutine, which is gone from the stack, and who has called it.
  error(problem, type(problem) == 'string' and 3 or 0)
end

function threads.wrap(body)
  local thread = create(body)
  return function(...) return unwrapped(threads.resume(thread, ...)) end
end

local of_texts, names = getmetatable(''), {}
for name, value in pairs(string) do names[name] = value end
names.dump = nil
of_texts.__index, of_texts.__metatable = names, false

globals.string, globals.table, globals.math = lock(names), lock(table), lock(math)
globals.coroutine, globals.bit, globals.cjson = lock(threads), lock(host.bit), lock(host.cjson)

-- What carries out commands is put here for each run.
local redis = {}

local function one_text(...)
  return select('#', ...) == 1 and type((...)) == 'string'
end

function redis.error_reply(...)
  if not one_text(...) then return {err = 'ERR wrong number or type of arguments'} end
  local code = (...)
  if code:sub(1, 1) == '-' then code = code:sub(2) end
  if not code:find(' ', 1, true) then code = 'ERR ' .. code end
  return {err = code}
end

function redis.status_reply(...)
  if not one_text(...) then return {err = 'ERR wrong number or type of arguments'} end
  return {ok = (...)}
end

redis.sha1hex, redis.log, redis.setresp = host.sha1hex, host.log, host.setresp

-- There is nobody to replicate to, and one way to write.
function redis.replicate_commands() return true end
function redis.set_repl() end

redis.REPL_ALL, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, redis.REPL_NONE = 3, 1, 2, 2, 0
redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING = 0, 1, 2, 3
redis.REDIS_VERSION, redis.REDIS_VERSION_NUM = host.version, host.version_number
globals.redis = lock(redis)

-- The globals of scripts are those above and nothing else.
local names_of_all = {}
for name in pairs(_G) do names_of_all[#names_of_all + 1] = name end
for _, name in ipairs(names_of_all) do _G[name] = nil end
globals._G = _G
locked[_G] = globals
setmetatable(_G, {
  __index = function(_, name)
    local value = globals[name]
    if value == nil then error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2) end
    return value
  end,
  __newindex = function() error(READ_ONLY, 2) end,
  __metatable = false,
})

local function described(problem)
  local message, is_reply
  if type(problem) == 'table' then
    message, is_reply = rawget(problem, 'err'), true
  elseif type(problem) == 'userdata' then
    message, is_reply = host.text(problem)
  end
  if type(message) ~= 'string' then message, is_reply = tostring(problem), false end
  local source, line = host.place()
  return {err = is_reply and message or 'ERR ' .. message, source = source, line = line}
end

-- Runs a script. Whether it went well, with what it gave back or what went wrong and where.
return function(script, keys, arguments, call, protected_call, check)
  globals.KEYS, globals.ARGV, redis.call, redis.pcall, redis.acl_check_cmd = keys, arguments, call, protected_call, check
  inside = 0
  local is_right, value = xpcall(script, described)
  globals.KEYS, globals.ARGV, redis.call, redis.pcall, redis.acl_check_cmd = nil, nil, nil, nil, nil
  if is_right then return true, value end
  if type(value) ~= 'table' then value = {err = 'ERR ' .. tostring(value)} end
  return false, value.err, value.source, value.line
end
