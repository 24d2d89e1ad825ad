-- The store of one shared crawl: three commands, each one atomic step.
-- KEYS[1] is "{crawl}"; ARGV is "join", "work" or "leave", its message in MessagePack, and in tests
-- the time. `message.py` has the fields of the messages, and `store_model.py` of the tests is this
-- script in Python.
-- All checks come before the first write: an error undoes nothing.
--
--   :meaning :salt     what defines the crawl, and the salt of its keys
--   :n                 added done spent out budget levels level open seeded wall clock ends stop
--   :s:BUCKET          the values of the keys of the jobs that were seen
--   :q:HOST            "number job" of those that wait
--   :d:DEPTH:HOST :lh:DEPTH :lv   the same of deeper levels, their hosts, and how many they are
--   :out:WORKER        number -> "host job" of those that are out with a worker
--   :hold              host -> worker      :of:WORKER  its hosts    :k:WORKER  those with news
--   :ready :rest       host -> when it may be taken; and when its rest is over, if nothing waits
--   :sess :w:WORKER    worker -> when its lease ends; the number of its last message
--   :dead              workers whose jobs are given back
--   :wants :since      workers that can ask more -> how many hosts they have, and since when
local T, command, m = KEYS[1], ARGV[1], cmsgpack.unpack(ARGV[2])
local call = redis.call
local N, READY, SESSIONS, HOLD, REST = T..':n', T..':ready', T..':sess', T..':hold', T..':rest'
local DEAD, SHORT, SINCE = T..':dead', T..':wants', T..':since'
local PER = 200                                   -- the most jobs of a host that one reply brings
local PATIENCE = 500                              -- milliseconds
local AT_ONCE = 4000                              -- `unpack` has a limit
local function key(kind, name) return T..':'..kind..':'..name end
local function num(x) return string.format('%d', x) end

local function in_portions(list, run)
  for a = 1, #list, AT_ONCE do run(unpack(list, a, math.min(a + AT_ONCE - 1, #list))) end
end

-- Real time, but a gap between two calls counts for a second at most, and never for less than
-- nothing: a clock that jumps, or a store that was away, takes no lease from anybody. The second
-- value has the whole gap: by it the leases are over of those that do not call any more.
local function clock()
  local t = call('TIME')
  local wall = tonumber(ARGV[3]) or t[1] * 1000 + math.floor(t[2] / 1000)
  local was = call('HMGET', N, 'wall', 'clock')
  local gap, before = math.max(0, wall - tonumber(was[1] or wall)), tonumber(was[2] or '0')
  local now = before + math.min(1000, gap)
  call('HSET', N, 'wall', num(wall), 'clock', num(now))
  return now, before + gap
end

local function split(entry)
  local at = string.find(entry, ' ', 1, true)
  return string.sub(entry, 1, at - 1), string.sub(entry, at + 1)
end

local function free(host, due)                    -- nobody holds it: it is ready if something waits
  call('HDEL', HOLD, host)
  if call('EXISTS', key('q', host)) == 1 then call('ZADD', READY, num(due), host) end
end

-- What a worker had goes to the front of the queues, and its hosts are free. At most 5,000 jobs at
-- once; returns whether that was all. The session is gone by then, so nothing is added meanwhile.
local function give_back(name, now)
  local OUT, OF, back = key('out', name), key('of', name), {}
  for _, id in ipairs(call('HRANDFIELD', OUT, 5000)) do back[#back + 1] = tonumber(id) end
  table.sort(back, function(x, y) return x > y end)
  for i, id in ipairs(back) do back[i] = num(id) end
  in_portions(back, function(...)
    local some = {...}
    for i, entry in ipairs(call('HMGET', OUT, ...)) do
      local host, job = split(entry)
      call('LPUSH', key('q', host), some[i]..' '..job)
    end
    call('HDEL', OUT, ...)
  end)
  if #back > 0 then call('HINCRBY', N, 'out', -#back) end
  if call('EXISTS', OUT) == 1 then return false end
  for _, host in ipairs(call('SMEMBERS', OF)) do free(host, now) end
  call('DEL', OF)
  return true
end

local function end_session(name)
  call('DEL', key('w', name), key('k', name))
  call('ZREM', SESSIONS, name)
  call('ZREM', SHORT, name)
  call('ZREM', SINCE, name)
end

local function join()
  local name, ttl, meaning, salt, budget, levels, limit = unpack(m)
  local stored = call('GET', T..':meaning')
  if call('EXISTS', key('w', name)) == 1 then return redis.error_reply('TAKEN') end
  if not stored and meaning == '' then return redis.error_reply('NONE') end
  if not stored then
    call('SET', T..':meaning', meaning)
    call('SET', T..':salt', salt)
    -- One unit for the seeds: it ends with them.
    call('HSET', N, 'added', 1, 'done', 0, 'spent', 0, 'out', 0, 'budget', -1,
         'levels', levels and 1 or 0, 'level', 0, 'open', 0)
  end
  local now, real = clock()
  -- Who comes when all have left goes on with a crawl that was stopped, or whose budget is spent.
  if call('ZCOUNT', SESSIONS, num(real + 1), '+inf') == 0 then
    call('HDEL', N, 'stop')
    call('HSET', N, 'ends', num(now + limit))
    if budget >= 0 then call('HSET', N, 'budget', num(budget)) end
  end
  call('HSET', key('w', name), 'seq', 0)
  call('ZADD', SESSIONS, num(now + ttl), name)
  return cmsgpack.pack({stored or meaning, call('GET', T..':salt'),
                        call('HEXISTS', N, 'seeded') == 1, call('HGET', N, 'ends') - now,
                        tonumber(call('HGET', N, 'budget'))})
end

local function leave()
  if call('EXISTS', key('w', m)) == 0 then return redis.error_reply('FENCED') end
  end_session(m)
  if not give_back(m, clock()) then call('RPUSH', DEAD, m) end
  return ''
end

local function work()
  local name, seq, ttl, ended, found, want, room, hungry, back, seeded, was_pages, was_spent = unpack(m)
  local W, OF, NEWS, OUT = key('w', name), key('of', name), key('k', name), key('out', name)
  local last = tonumber(call('HGET', W, 'seq') or '-1')
  if last < 0 then return redis.error_reply('FENCED') end
  if seq ~= last and seq ~= last + 1 then return redis.error_reply('LOST') end
  local again = seq == last                       -- the reply was lost: its changes are made
  if again then ended, found, back, seeded, was_pages, was_spent = {}, {}, {}, false, 0, 0 end
  local twice = false
  in_portions(ended, function(...)
    for _, there in ipairs(call('HMGET', OUT, ...)) do twice = twice or not there end
  end)
  if twice then return redis.error_reply('TWICE') end

  local now = clock()
  call('HSET', W, 'seq', seq)
  call('ZADD', SESSIONS, num(now + ttl), name)
  local c = call('HMGET', N, 'added', 'done', 'spent', 'out', 'budget', 'levels', 'level', 'open')
  for i = 1, 8 do c[i] = tonumber(c[i]) end
  local added, done, spent, out, budget, levels, level, open = unpack(c)
  in_portions(ended, function(...) call('HDEL', OUT, ...) end)
  done, out, open, spent = done + #ended, out - #ended, open - was_pages, spent + was_spent

  local news, push, deep, woken = {}, {}, {}, {}
  for i, group in ipairs(found) do                -- each {{bucket, value, host, depth, job}, ...}
    news[i] = 0
    for _, k in ipairs(group) do
      if call('SADD', key('s', k[1]), num(k[2])) == 1 then
        news[i], added = news[i] + 1, added + 1
        local host, depth, entry = k[3], k[4], num(added)..' '..k[5]
        if levels == 1 and depth > level then
          local at = depth..':'..host
          if not deep[at] then deep[at] = {depth = depth, host = host} end
          table.insert(deep[at], entry)
        else
          if depth >= 0 then open = open + 1 end
          if not push[host] then push[host] = {} end
          table.insert(push[host], entry)
        end
      end
    end
  end
  local function offer(host)                      -- something waits there: tell who holds it
    local holder = call('HGET', HOLD, host)
    if holder == name then woken[host] = true
    elseif holder then call('SADD', key('k', holder), host)
    else
      local due = math.max(now, tonumber(call('HGET', REST, host) or '0'))
      call('ZADD', READY, 'NX', num(due), host)
    end
  end
  for host, list in pairs(push) do
    in_portions(list, function(...) call('RPUSH', key('q', host), ...) end)
    offer(host)
  end
  for at, list in pairs(deep) do
    call('HINCRBY', T..':lv', list.depth, #list)
    call('SADD', key('lh', list.depth), list.host)
    in_portions(list, function(...) call('RPUSH', key('d', at), ...) end)
  end
  if seeded and call('HSETNX', N, 'seeded', 1) == 1 then done = done + 1 end
  if levels == 1 and call('HEXISTS', N, 'seeded') == 1 then
    if open == 0 then                             -- the next level opens when this one has ended
      local next
      for _, d in ipairs(call('HKEYS', T..':lv')) do next = math.min(next or 1/0, tonumber(d)) end
      if next then
        level, open = next, tonumber(call('HGET', T..':lv', next))
        call('HDEL', T..':lv', next)
      end
    end
    for _, host in ipairs(call('SPOP', key('lh', level), 1000)) do
      local from = key('d', level..':'..host)
      in_portions(call('LRANGE', from, 0, -1), function(...) call('RPUSH', key('q', host), ...) end)
      call('DEL', from)
      offer(host)
    end
  end
  for _, each in ipairs(back) do                  -- {host, rest, numbers of jobs that did not start}
    local host, rest, numbers = unpack(each)
    if call('HGET', HOLD, host) == name then
      call('SREM', OF, host)
      for a = #numbers, 1, -1 do
        local entry = call('HGET', OUT, num(numbers[a]))
        if entry then
          local _, job = split(entry)
          call('HDEL', OUT, num(numbers[a]))
          call('LPUSH', key('q', host), num(numbers[a])..' '..job)
          out = out - 1
        end
      end
      if rest > 0 then call('HSET', REST, host, num(now + rest)) end
      free(host, now + rest)
    end
  end

  -- The session whose lease has run out is fenced from now on, and what it had is given back.
  local late = call('ZRANGEBYSCORE', SESSIONS, '-inf', num(now), 'LIMIT', 0, 1)[1]
  if late then
    end_session(late)
    call('RPUSH', DEAD, late)
  end
  local dead = call('LINDEX', DEAD, 0)
  if dead then
    call('HSET', N, 'out', num(out))
    if give_back(dead, now) then call('LPOP', DEAD) end
    out = tonumber(call('HGET', N, 'out'))
  end

  -- While a worker that has less than its share of the hosts is short of work, who has more than
  -- its own gives some back. If any is short for half a second, who is not gives a quarter, unless
  -- as many hosts are ready as workers are short. At once, two workers would pass one host to and fro.
  local granted, put, shed = {}, {}, 0
  local function fair()
    local mine, total = call('SCARD', OF), call('HLEN', HOLD) + call('ZCARD', READY)
    local share = math.max(1, math.ceil(total / call('ZCARD', SESSIONS)))
    local is_short = want > 0
    call('ZREM', SHORT, name)
    if call('ZCOUNT', SHORT, 0, share - 1) > 0 then
      want, shed = math.min(want, math.max(0, share - mine)), math.max(0, mine - share)
    end
    if is_short then
      call('ZADD', SHORT, mine, name)
      call('ZADD', SINCE, 'NX', num(now), name)
    else
      call('ZREM', SINCE, name)
      local others = call('ZCOUNT', SINCE, '-inf', num(now - PATIENCE))
      if mine > 1 and call('ZCOUNT', READY, '-inf', num(now)) < others then
        shed = math.max(shed, math.ceil(mine / 4))
      end
    end
  end
  local function fill(host)
    local most = math.min(PER, room, budget < 0 and PER or budget - spent - out)
    local jobs, some = {}, most > 0 and call('LPOP', key('q', host), most) or {}
    for i, entry in ipairs(some) do
      local id, job = split(entry)
      jobs[i] = {tonumber(id), job}
      put[#put + 1], put[#put + 2] = id, host..' '..job
    end
    out, room = out + #jobs, room - #jobs
    granted[#granted + 1] = {host, jobs, call('EXISTS', key('q', host)) == 1}
  end
  if again then                                   -- all that it has: it takes what it does not know
    local by = {}
    for _, host in ipairs(call('SMEMBERS', OF)) do
      by[host] = {}
      granted[#granted + 1] = {host, by[host], true}
    end
    local all = call('HGETALL', OUT)
    for a = 1, #all, 2 do
      local host, job = split(all[a + 1])
      table.insert(by[host], {tonumber(all[a]), job})
    end
  else
    fair()
    if want > 0 and room > 0 then
      local taken, hold = call('ZRANGEBYSCORE', READY, '-inf', num(now), 'LIMIT', 0, want), {}
      for i, host in ipairs(taken) do
        hold[2 * i - 1], hold[2 * i] = host, name
        fill(host)
      end
      if #taken > 0 then
        call('HSET', HOLD, unpack(hold))
        call('SADD', OF, unpack(taken))
        call('ZREM', READY, unpack(taken))
        call('HDEL', REST, unpack(taken))
      end
    end
    for _, host in ipairs(hungry) do woken[host] = true end
    for _, host in ipairs(call('SPOP', NEWS, 100)) do woken[host] = true end
    local own = {}
    for host in pairs(woken) do own[#own + 1] = host end
    table.sort(own)
    for _, host in ipairs(own) do
      if call('HGET', HOLD, host) == name then fill(host) end
    end
    in_portions(put, function(...) call('HSET', OUT, ...) end)
  end
  call('HSET', N, 'added', num(added), 'done', num(done), 'spent', num(spent),
       'out', num(out), 'level', level, 'open', num(open))
  local next = tonumber(call('ZRANGE', READY, 0, 0, 'WITHSCORES')[2])
  local over = call('HGET', N, 'stop') or (budget >= 0 and spent >= budget and 'page_budget') or ''
  local due = next and math.max(0, math.ceil(next - now)) or -1
  return cmsgpack.pack({again, news, granted, added, done, over, due, shed})
end

return ({join = join, work = work, leave = leave})[command]()
