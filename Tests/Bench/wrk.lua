-- wrk with the tokens of a file in turn, or with bodies: `-- FILE TOKENS BODY-BYTES`, of which the last two may be 0.

local requests, turn = {}, 0

function init(arguments)
    local count, bytes = tonumber(arguments[2]), tonumber(arguments[3])
    if bytes > 0 then
        wrk.method = "POST"
        wrk.body = string.rep("x", bytes)
    end
    local lines = io.lines(arguments[1])
    for number = 1, math.max(count, 1) do
        if count > 0 then wrk.headers["Authorization"] = "Bearer " .. lines() end
        requests[number] = wrk.format()
    end
end

function request()
    turn = turn % #requests + 1
    return requests[turn]
end
