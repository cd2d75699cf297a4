-- Asks Martlet about each request (Apache 2.4 with mod_lua and LuaSocket). Only 200 lets it pass; the client gets any
-- other response. What fails here is status 500 or 503, and no request reaches the API.
local socket = require "socket"

local address, port = "127.0.0.1", 8080
local target = "/auth/check"
local connect_seconds, total_seconds = 2, 15
local largest_body = 65536

-- The identity headers and the assertion; a name that a route sets (headers.set) is added.
local identity = { "x-auth-subject", "x-auth-provider", "x-auth-email", "x-auth-assertion" }

-- The letters and digits of a name, which decide whether an API may take one name for another.
local function letters(name) return (name:lower():gsub("[^%w]", "")) end

local reserved = {}
for _, name in ipairs(identity) do reserved[letters(name)] = true end

-- What a check has not: fields of the body and of the connection, and what this script writes itself.
local dropped = {
    ["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true,
    ["keep-alive"] = true, ["te"] = true, ["trailer"] = true, ["upgrade"] = true, ["host"] = true,
    ["proxy-connection"] = true,
}

-- What may be named in Connection: Apache drops every field that is, an identity header too.
local hops = { ["close"] = true, ["keep-alive"] = true, ["upgrade"] = true, ["te"] = true, ["http2-settings"] = true }

-- What a client gets of a response.
local passed = { "www-authenticate", "retry-after", "set-cookie", "location", "cache-control", "x-request-id" }

-- The fields of a check, each as a line.
local function fields_of(r)
    local host = r.headers_in["Host"] or ""
    local lines = {
        "GET " .. target .. " HTTP/1.1", "Host: " .. host, "Connection: close",
        "X-Forwarded-Method: " .. r.method,
        "X-Forwarded-Uri: " .. r.unparsed_uri,
        "X-Forwarded-Host: " .. host,
        "X-Forwarded-Proto: " .. (r.is_https and "https" or "http"),
        "X-Forwarded-For: " .. r.useragent_ip,
    }
    for name, value in pairs(r:headers_in_table()) do
        local lower = name:lower()
        if not dropped[lower] and not lower:find("^x%-forwarded%-") then lines[#lines + 1] = name .. ": " .. value end
    end
    return table.concat(lines, "\r\n") .. "\r\n\r\n"
end

-- The response to a check: status, fields by their names in lower case, and the body; nil after an error.
local function ask(r)
    local deadline = socket.gettime() + total_seconds
    local connection = socket.tcp()
    connection:settimeout(connect_seconds)
    if not connection:connect(address, port) then
        connection:close()
        return nil
    end
    local function limit() connection:settimeout(math.max(deadline - socket.gettime(), 0.001), "t") end
    limit()
    local line = connection:send(fields_of(r)) and connection:receive("*l")
    local status = line and tonumber(line:match("^HTTP/1%.1 (%d%d%d) "))
    local fields, body = {}, ""
    while status do
        limit()
        line = connection:receive("*l")
        if not line then status = nil end
        if not line or line == "" then break end
        local name, value = line:match("^([^:]+):%s*(.-)%s*$")
        if name then
            name = name:lower()
            fields[name] = fields[name] and name ~= "set-cookie" and (fields[name] .. ", " .. value) or value
        end
    end
    local count = tonumber(fields["content-length"] or "0")
    if not count or count > largest_body then status = nil end
    if status and count > 0 then
        limit()
        body = connection:receive(count)
    end
    connection:close()
    if not body then return nil end
    return status, fields, body
end

function check(r)
    for word in (r.headers_in["Connection"] or ""):gmatch("[^,%s]+") do
        if not hops[word:lower()] then return 400 end
    end
    -- The client's copies in every spelling, and every field whose name has another character than letters, digits and
    -- dashes: an API may take X_Forwarded.For for X-Forwarded-For.
    for name in pairs(r:headers_in_table()) do
        if reserved[letters(name)] or name:find("[^%w-]") or name:lower():find("^x%-*auth%-") then
            r.headers_in[name] = nil
        end
    end

    local status, fields, body = ask(r)
    if status == 200 then
        for _, name in ipairs(identity) do
            local value = fields[name]
            r.headers_in[name] = value and value ~= "" and value or nil
        end
        -- A session cookie that was replaced.
        if fields["set-cookie"] then r.err_headers_out["Set-Cookie"] = fields["set-cookie"] end
        return apache2.OK
    end
    if not status or status < 300 or (status >= 500 and status ~= 503) then
        r.err_headers_out["Retry-After"] = "1"
        return 503
    end
    for _, name in ipairs(passed) do
        if fields[name] then r.err_headers_out[name] = fields[name] end
    end
    r.status = status
    r.content_type = fields["content-type"] or "text/plain"
    if body ~= "" then r:write(body) end
    return apache2.DONE
end
