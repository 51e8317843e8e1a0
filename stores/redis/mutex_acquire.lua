-- Takes a mutex that is free, or again for the wire id that holds it. Else says who has it, and keeps the place of
-- this process in the queue.
--
-- KEYS  lease, fence, token, details; queue, where there is a place in it
-- ARGV  1 wire id  2 lease in ms  3 "ttl transition " of the details, in ms  4 what the token must be above
--       5 place in the queue, 6 whether it was there before: '1'; or neither
--       the last: not before this time in ms, which is when the server started and a lease later, unless a term has
--       begun since; or '0'
-- Reply time in us, as text: a new term, whose token it is; {time, token}, where another is needed
--       {time, '', ms}: too early, see the last
--       {time, token or '0', ms left, owner, details}: as it is; a term of this wire id has the new lease
--
-- What costs: a redis.call about a microsecond, a table as reply one more, a number that becomes text two, a text that
-- becomes a number and a function made anew a fifth. Hence digits are taken from the clock as they come and compared
-- as texts of the same length.
local call = redis.call
local key, id, lease = KEYS[1], ARGV[1], ARGV[2]
local time = call('time')
local now = #time[2] == 6 and time[1] .. time[2] or time[1] .. string.sub('00000' .. time[2], -6)

local not_before = ARGV[#ARGV]
if not_before ~= '0' and now / 1000 < tonumber(not_before) and call('exists', key) == 0 then
  -- A fence is a time in us. One from before the start came with a snapshot, without what was granted since; so may one
  -- from ahead of the clock.
  local fence = tonumber(call('get', KEYS[2]) or 0) or 0
  if fence < (not_before - lease) * 1000 or fence > tonumber(now) then
    return { now, '', math.ceil(not_before - now / 1000) }
  end
end

local found = not call('set', key, id, 'nx', 'px', lease) and call('mget', key, KEYS[3], KEYS[4])
if not found or (found[1] == id and not found[2]) then
  local token, floor = now, ARGV[4]
  if #floor > #now or (#floor == #now and floor >= now) then token = string.format('%.0f', floor + 1) end
  -- What an ACL or a key of another type may forbid comes first, and is undone by what was allowed already: `set`.
  local last = redis.pcall('set', KEYS[2], token, 'get')
  local done = last
  if type(last) == 'string' and (#last > #token or (#last == #token and last >= token)) and tonumber(last) then
    -- Exact up to 2^53; joined to a text, a number has 14 digits.
    if tonumber(last) < 9007199254740991 then
      token = string.format('%.0f', last + 1)
      call('set', KEYS[2], token)
    else
      done = redis.error_reply('CORRUPT the fence is at 2^53')
    end
  end
  if KEYS[5] and ARGV[6] == '1' and type(done) ~= 'table' then done = redis.pcall('zrem', KEYS[5], ARGV[5]) end
  if type(done) ~= 'table' then done = redis.pcall('publish', key, 'acquired@@' .. id) end
  if type(done) == 'table' then
    if not found then call('set', key, '', 'pxat', 1) end
    if not last then
      call('set', KEYS[2], '', 'pxat', 1)
    elseif type(last) == 'string' then
      call('set', KEYS[2], last)
    end
    return done
  end
  if found then call('set', key, id, 'px', lease) end
  call('set', KEYS[3], token, 'px', lease)
  call('set', KEYS[4], ARGV[3] .. now .. ' ' .. id, 'px', lease)
  return token == now and now or { now, token }
end

if not found[1] then return redis.error_reply('WRONGTYPE ' .. key .. ' is not a string') end
if found[1] == id then
  local details = ARGV[3] .. (found[3] and string.match(found[3], '^%d+ %d+ (%d+) ') or now) .. ' ' .. id
  call('pexpire', key, lease)
  call('pexpire', KEYS[3], lease)
  call('set', KEYS[4], details, 'px', lease)
  return { now, found[2], tonumber(lease), id, details }
end
local left = call('pttl', key)
if KEYS[5] then
  -- Who died in the queue is found by looking at a few at a time: entries older than three leases that nobody hears.
  for _, place in ipairs(call('zrandmember', KEYS[5], 8)) do
    local since = call('zscore', KEYS[5], place)
    if since and time[1] - since > 3 * lease / 1000 and call('pubsub', 'numsub', key .. ':' .. place)[2] == 0 then
      call('zrem', KEYS[5], place)
    end
  end
  -- Its end first: a queue without one would stay for ever, where an ACL forbids it.
  local lasts = math.max(3 * lease, 60000)
  local is_there = call('pexpire', KEYS[5], lasts) == 1
  call('zadd', KEYS[5], 'nx', string.sub(now, 1, -7) .. '.' .. string.sub(now, -6, -4), ARGV[5])
  if not is_there then call('pexpire', KEYS[5], lasts) end
end
return { now, found[2] or '0', left, found[1], found[3] or '' }
