-- Asks Martlet about each request (HAProxy 2.6 or newer). Only 200 lets it pass; the client gets any other response.
local endpoint = "http://127.0.0.1:8080/auth/check"

-- The identity headers and the assertion; a name that a route sets (headers.set) is added.
local identity = { "x-auth-subject", "x-auth-provider", "x-auth-email", "x-auth-assertion" }

-- What a check has not: fields of the body and of the connection. The configuration has deleted what describes a
-- request.
local dropped = {
    ["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true, ["expect"] = true,
    ["keep-alive"] = true, ["te"] = true, ["trailer"] = true, ["upgrade"] = true, ["host"] = true,
}

-- What a client gets of a response.
local passed = { ["content-type"] = true, ["www-authenticate"] = true, ["retry-after"] = true, ["set-cookie"] = true,
    ["location"] = true, ["cache-control"] = true, ["x-request-id"] = true }

-- The letters and digits of a name, which decide whether an API may take one name for another.
local function letters(name) return (name:lower():gsub("[^%w]", "")) end

local reserved = {}
for _, name in ipairs(identity) do reserved[letters(name)] = true end

local function list(values)
    local copy = {}
    for index = 0, #values do copy[#copy + 1] = values[index] end
    return copy
end

local function unavailable(txn)
    txn:done(txn:reply({ status = 503, headers = { ["retry-after"] = { "1" } } }))
end

core.register_action("martlet", { "http-req" }, function(txn)
    local fields = {}
    for name, values in pairs(txn.http:req_get_headers()) do
        if reserved[letters(name)] then
            txn.http:req_del_header(name)
        elseif not dropped[name] then
            fields[name] = list(values)
        end
    end
    local host = txn.f:req_hdr("host") or ""
    fields["host"] = { host }
    fields["x-forwarded-host"] = { host }
    fields["x-forwarded-method"] = { txn.f:method() }
    fields["x-forwarded-uri"] = { txn.f:pathq() }
    fields["x-forwarded-proto"] = { txn.f:ssl_fc() == 1 and "https" or "http" }
    fields["x-forwarded-for"] = { txn.f:src() }

    local response = core.httpclient():get({ url = endpoint, headers = fields, timeout = 15000 })
    if not response or not response.headers then return unavailable(txn) end
    if response.status == 200 then
        for _, name in ipairs(identity) do
            local values = response.headers[name]
            txn.http:req_del_header(name)
            if values and values[0] and values[0] ~= "" then txn.http:req_set_header(name, values[0]) end
        end
        local cookie = response.headers["set-cookie"]
        if cookie and cookie[0] then txn:set_var("txn.martlet_cookie", cookie[0]) end
        return
    end
    if response.status < 300 or response.status >= 500 and response.status ~= 503 then return unavailable(txn) end
    local headers = {}
    for name, values in pairs(response.headers) do
        if passed[name] then headers[name] = list(values) end
    end
    txn:done(txn:reply({ status = response.status, headers = headers, body = response.body or "" }))
end, 0)
