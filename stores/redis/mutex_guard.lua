-- Renews terms: of each, only what this wire id holds under this token; nothing is created.
--
-- KEYS  lease, token, details; three for each term
-- ARGV  wire id, token, lease in ms, "ttl transition " of the details; four for each term
-- Reply {time in us, one for each term}: the details of a renewed term; {token, ms left, owner, details} of another
local call = redis.call
local time = call('time')
local reply = { time[1] .. string.sub('00000' .. time[2], -6) }
for i = 1, #KEYS / 3 do
  local key, token, details = KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]
  local id, lease, shape = ARGV[4 * i - 3], ARGV[4 * i - 1], ARGV[4 * i]
  local found = call('mget', key, token, details)
  if found[1] == id and found[2] == ARGV[4 * i - 2] then
    local known = found[3] or shape .. reply[1] .. ' ' .. id
    -- One command or the other for all three: an ACL that forbids it forbids all of it.
    if string.sub(known, 1, #shape) == shape and found[3] then
      call('pexpire', key, lease)
      call('pexpire', token, lease)
      call('pexpire', details, lease)
    else
      known = shape .. (string.match(known, '^%d+ %d+ (%d+) ') or reply[1]) .. ' ' .. id
      call('set', key, id, 'px', lease)
      call('set', token, found[2], 'px', lease)
      call('set', details, known, 'px', lease)
    end
    reply[i + 1] = known
  else
    reply[i + 1] = { found[2] or '0', found[1] and call('pttl', key) or -2, found[1] or '',
      found[3] or '' }
  end
end
return reply
