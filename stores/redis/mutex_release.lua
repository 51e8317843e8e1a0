-- Gives up what this wire id holds, and wakes the first in the queue who still listens.
--
-- KEYS  lease, token, details, queue
-- ARGV  1 wire id  2 the token, where it matters  3 'keep': the name goes, the lease stays
-- Reply 1: done; 0: it holds nothing here
local call = redis.call
local key = KEYS[1]
if call('get', key) ~= ARGV[1] then return 0 end
if ARGV[2] and (call('get', KEYS[2]) or '0') ~= ARGV[2] then return 0 end
if ARGV[3] == 'keep' then
  call('set', key, '', 'xx', 'keepttl')
  return 1
end
call('del', key, KEYS[2], KEYS[3])
local message = 'released@@' .. ARGV[1]
-- Who waits hears both the mutex and itself: where nobody hears the one, nobody in the queue is alive.
if call('publish', key, message) == 0 then return 1 end
for _ = 1, 16 do
  local first = call('zpopmin', KEYS[4])[1]
  if not first then break end
  -- Nobody hears the dead.
  if call('publish', key .. ':' .. first, message) > 0 then break end
end
return 1
