-- Verification of RS256 tokens inside nginx, with OpenSSL's library through LuaJIT and a cache of verified tokens in a table.
-- Debian has no JWT library for nginx; this does what such libraries do, and the cache is what a careful user would add.

local ffi = require "ffi"
local json = require "cjson.safe"

ffi.cdef [[
    void *BIO_new_mem_buf(const void *data, int length);
    void *PEM_read_bio_PUBKEY(void *bio, void **key, void *callback, void *user);
    void *EVP_MD_CTX_new(void);
    int EVP_MD_CTX_reset(void *context);
    const void *EVP_sha256(void);
    int EVP_DigestVerifyInit(void *context, void **pkey_context, const void *digest, void *engine, void *key);
    int EVP_DigestVerify(void *context, const char *signature, size_t signature_length, const char *data, size_t length);
]]

local crypto = ffi.load "crypto.so.3"
local CACHED = 200000
local M = { verified = {}, count = 0 }

function M.configure(key_file, issuer, audience)
    local pem = assert(io.open(key_file)):read "*a"
    M.key = crypto.PEM_read_bio_PUBKEY(crypto.BIO_new_mem_buf(pem, #pem), nil, nil, nil)
    assert(M.key ~= nil, "no key")
    M.context, M.digest = crypto.EVP_MD_CTX_new(), crypto.EVP_sha256()
    M.issuer, M.audience = issuer, audience
end

local function decode(part)
    part = part:gsub("-", "+"):gsub("_", "/")
    return ngx.decode_base64(part .. string.rep("=", -#part % 4))
end

local function claims_of(token)
    local head, payload, signature = token:match "^([%w_-]+)%.([%w_-]+)%.([%w_-]+)$"
    if not head then return nil end
    local header = json.decode(decode(head) or "")
    if type(header) ~= "table" or header.alg ~= "RS256" then return nil end
    local raw, signed = decode(signature), head .. "." .. payload
    if not raw then return nil end
    crypto.EVP_MD_CTX_reset(M.context)
    if crypto.EVP_DigestVerifyInit(M.context, nil, M.digest, nil, M.key) ~= 1 then return nil end
    if crypto.EVP_DigestVerify(M.context, raw, #raw, signed, #signed) ~= 1 then return nil end
    local claims = json.decode(decode(payload) or "")
    if type(claims) ~= "table" or claims.iss ~= M.issuer or claims.aud ~= M.audience then return nil end
    if type(claims.exp) ~= "number" or type(claims.sub) ~= "string" then return nil end
    return { subject = claims.sub, expires = claims.exp, email = claims.email }
end

-- Sets the headers that the upstream believes, or ends the request.
function M.access()
    local field = ngx.var.http_authorization
    local token = field and field:match "^Bearer ([^ ]+)$"
    local caller = token and M.verified[token]
    if token and not caller then
        caller = claims_of(token)
        if caller and M.count < CACHED then
            M.verified[token], M.count = caller, M.count + 1
        end
    end
    if not caller or caller.expires <= ngx.time() then return ngx.exit(401) end
    ngx.var.subject, ngx.var.email = caller.subject, caller.email or ""
end

return M
