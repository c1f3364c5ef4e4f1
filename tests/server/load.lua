-- Deliveries that all differ, for wrk: a file with one in each line, GUID <tab> signature <tab> body.
-- Of two threads each sends every other line; after the last one it begins anew, which is then known already.
local lines, at = {}, 0
local threads = 0

function setup(thread)
  thread:set("id", threads)
  threads = threads + 1
end

function init(args)
  for line in io.lines(args[1]) do
    lines[#lines + 1] = line
  end
  at = id - 2
end

function request()
  at = at + 2
  local guid, signature, body = lines[at % #lines + 1]:match("([^\t]*)\t([^\t]*)\t(.*)")
  return wrk.format("POST", "/webhook", {
    ["Content-Type"] = "application/json",
    ["X-GitHub-Event"] = "issues",
    ["X-GitHub-Delivery"] = guid,
    ["X-Hub-Signature-256"] = signature,
  }, body)
end
