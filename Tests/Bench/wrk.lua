-- wrk with a body: `-- BYTES`.

function init(arguments)
    wrk.method = "POST"
    wrk.body = string.rep("x", tonumber(arguments[1]))
end
