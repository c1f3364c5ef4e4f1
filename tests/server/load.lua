-- A burst of deliveries that all differ, for wrk: FILE with one in each line, GUID <tab> signature <tab> body.
-- wrk -t2 -cN -dLIMIT -s load.lua URL -- FILE N SIGN
-- Each of two threads sends every other line. After its last line a thread starts again with duplicates, until it has as
-- many answers as it has lines and connections: then all of its lines were sent. It creates a file SIGN-0 or SIGN-1,
-- and whoever sees both ends wrk by SIGINT. The last line of the output is JSON.
local THREADS = 2
local made = {}
local lines, at, own = {}, 0, 0
local connections, sign = 0, ""
answered, refused = 0, 0

function setup(thread)
  thread:set("id", #made)
  made[#made + 1] = thread
end

function init(args)
  for line in io.lines(args[1]) do
    lines[#lines + 1] = line
  end
  connections, sign = tonumber(args[2]) / THREADS, args[3]
  at = id - THREADS
  own = math.ceil((#lines - id) / THREADS)
end

function request()
  at = at + THREADS
  if at >= #lines then
    at = id
  end
  local guid, signature, body = lines[at + 1]:match("([^\t]*)\t([^\t]*)\t(.*)")
  return wrk.format("POST", "/webhook", {
    ["Content-Type"] = "application/json",
    ["X-GitHub-Event"] = "issues",
    ["X-GitHub-Delivery"] = guid,
    ["X-Hub-Signature-256"] = signature,
  }, body)
end

function response(status)
  answered = answered + 1
  if status ~= 202 then
    refused = refused + 1
  end
  if answered == own + connections then
    io.open(sign .. "-" .. id, "w"):close()
    wrk.thread:stop()
  end
end

function done(summary, latency)
  local all, not_taken = 0, 0
  for _, thread in ipairs(made) do
    all = all + thread:get("answered")
    not_taken = not_taken + thread:get("refused")
  end
  local failed = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format(
    '{"answered": %d, "refused": %d, "failed": %d, "p50": %.3f, "p99": %.3f, "max": %.3f}\n',
    all, not_taken, failed, latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency.max / 1000
  ))
end
