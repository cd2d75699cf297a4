local openidc = require("resty.openidc")
local cjson = require("cjson")
local M = {}

local opts = {
    discovery = "https://issuer.example.com/.well-known/openid-configuration",
    client_id = "portal",
    client_secret = "f3a1c9",
    redirect_uri = "https://portal.example.com/callback",
    logout_path = "/logout",
    scope = "openid email profile",
    renew_access_token_on_expiry = true,
}

function M.protect(role, action)
    for _, name in ipairs({ "X-User", "X-Name", "X-Userinfo" }) do ngx.req.clear_header(name) end
    local res, err = openidc.authenticate(opts, nil, action)
    if err then return ngx.exit(action == "deny" and 401 or 500) end
    if not res or not res.id_token then return end
    if not tostring(res.id_token.email):match("@example%.com$") then return ngx.exit(403) end
    if role and res.id_token.role ~= role then return ngx.exit(403) end
    ngx.req.set_header("X-User", res.id_token.sub)
    ngx.req.set_header("X-Name", res.id_token.name)
    ngx.req.set_header("X-Userinfo", ngx.encode_base64(cjson.encode(res.user)))
end

return M
