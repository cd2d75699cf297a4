internal import CLua
internal import MartletCore
internal import MartletCrypto

/// Runs scripts in Lua 5.1, as Redis does: without global variables, and with what the gateway's scripts use of Lua.
///
/// No script leaves anything behind but its compiled form, so servers may share an engine.
@safe package final class ScriptEngine {
    private enum Compiled {
        case function(Int32)
        case error(CommandError)
    }

    /// The script that runs.
    private struct Run {
        let model: RedisModel
        let peer: RedisPeer
        var hasWritten = false
    }

    private var lua: UnsafeMutablePointer<martlet_lua>?
    private var compiled: [RedisKey: Compiled] = [:]
    private var run: Run?
    /// References to the table of global variables, the one that scripts see, and the function that gets errors.
    private var references: (globals: Int32, sandbox: Int32, handler: Int32) = (0, 0, 0)

    /// Without memory for Lua every script fails.
    package init() {
        unsafe lua = martlet_lua_create(
            { context, state in
                guard let context = unsafe context, let state = unsafe state else { return 1 }
                let engine = unsafe Unmanaged<ScriptEngine>.fromOpaque(context).takeUnretainedValue()
                return unsafe engine.call(state)
            }, Unmanaged.passUnretained(self).toOpaque())
        prepare()
    }

    deinit { if let lua = unsafe lua { unsafe martlet_lua_free(lua) } }

    /// The name of a script: its SHA-1 in lowercase hexadecimal.
    static func digest(of source: [UInt8]) -> RedisKey {
        RedisKey(Array(Hexadecimal.text(SHA1.digest(source)).utf8))
    }

    private func prepare() {
        guard let lua = unsafe lua, let state = unsafe lua.pointee.state else { return }
        let source = Array(ScriptEngine.environment.utf8)
        guard unsafe load(source, "=environment", state) else { return }
        unsafe martlet_lua_push_call(lua, 1)
        unsafe martlet_lua_push_call(lua, 0)
        guard unsafe lua_pcall(state, 2, 3, 0) == 0 else { return }
        references.handler = unsafe luaL_ref(state, LUA_REGISTRYINDEX_)
        references.sandbox = unsafe luaL_ref(state, LUA_REGISTRYINDEX_)
        references.globals = unsafe luaL_ref(state, LUA_REGISTRYINDEX_)
    }

    private func load(_ source: [UInt8], _ name: String, _ state: OpaquePointer) -> Bool {
        unsafe source.withUnsafeBytes { bytes in
            let text = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
            return unsafe luaL_loadbuffer(state, text, bytes.count, name) == 0
        }
    }

    /// Compiles a script, unless that was done.
    func compile(_ source: [UInt8], _ digest: RedisKey) throws(CommandError) {
        if compiled[digest] == nil { compiled[digest] = compile(source) }
        if case .error(let error) = compiled[digest] { throw error }
    }

    private func compile(_ source: [UInt8]) -> Compiled {
        guard let state = unsafe lua?.pointee.state else { return .error(CommandError("ERR no Lua")) }
        guard unsafe load(source, "@user_script", state) else {
            let message = unsafe text(at: -1, state)?.text ?? ""
            unsafe lua_settop(state, 0)
            return .error(CommandError("ERR Error compiling script (new function): \(message)"))
        }
        unsafe lua_rawgeti(state, LUA_REGISTRYINDEX_, references.sandbox)
        _ = unsafe lua_setfenv(state, -2)
        return .function(unsafe luaL_ref(state, LUA_REGISTRYINDEX_))
    }

    /// Runs a compiled script.
    func run(
        _ digest: RedisKey, keys: ArraySlice<[UInt8]>, arguments: ArraySlice<[UInt8]>, on model: RedisModel,
        of peer: RedisPeer
    ) -> Reply {
        guard case .function(let function) = compiled[digest], let state = unsafe lua?.pointee.state else {
            return .error(CommandError("NOSCRIPT No matching script. Please use EVAL."))
        }
        run = Run(model: model, peer: peer)
        defer {
            run = nil
            unsafe lua_settop(state, 0)
        }
        unsafe lua_rawgeti(state, LUA_REGISTRYINDEX_, references.handler)
        unsafe lua_rawgeti(state, LUA_REGISTRYINDEX_, references.globals)
        for (name, values) in [("KEYS", keys), ("ARGV", arguments)] {
            unsafe push(name, state)
            unsafe push(list: values.map { .bytes($0) }, state)
            unsafe lua_rawset(state, -3)
        }
        unsafe lua_settop(state, 1)
        unsafe lua_rawgeti(state, LUA_REGISTRYINDEX_, function)
        guard unsafe lua_pcall(state, 0, 1, 1) == 0 else {
            return .error(unsafe failure(of: digest, state))
        }
        return unsafe reply(at: -1, state)
    }

    /// The error that the handler has made of what was raised.
    private func failure(of digest: RedisKey, _ state: OpaquePointer) -> CommandError {
        let message = unsafe field("err", state)?.text ?? "ERR unknown error"
        guard let source = unsafe field("source", state), let line = unsafe field("line", state) else {
            return CommandError(message)
        }
        return CommandError("\(message) script: \(digest.bytes.text), on \(source.text):\(line.text).")
    }

    /// A command of a script.
    private func call(_ state: OpaquePointer) -> Int32 {
        let count = unsafe lua_gettop(state)
        var arguments: [[UInt8]] = []
        for index in 0..<count {
            switch unsafe lua_type(state, index + 1) {
            case LUA_TNUMBER: arguments.append(unsafe lua_tonumber(state, index + 1).redisText)
            case LUA_TSTRING: arguments.append(unsafe text(at: index + 1, state) ?? [])
            default:
                let error = CommandError("ERR Lua redis lib command arguments must be strings or integers")
                unsafe push(.error(error), state)
                return 1
            }
        }
        guard !arguments.isEmpty, let model = run?.model, let peer = run?.peer else {
            unsafe push(
                .error(CommandError("ERR Please specify at least one argument for this redis lib call")), state)
            return 1
        }
        var hasWritten = run?.hasWritten ?? false
        let reply = model.execute(arguments, inScriptOf: peer, &hasWritten)
        run?.hasWritten = hasWritten
        unsafe push(reply, state)
        if case .error = reply { return 1 }
        return 0
    }
}

// MARK: - Values

/// The macro has a cast that is not imported.
private let LUA_REGISTRYINDEX_: Int32 = -10_000

extension ScriptEngine {
    private func text(at index: Int32, _ state: OpaquePointer) -> [UInt8]? {
        var count = 0
        guard let start = unsafe lua_tolstring(state, index, &count) else { return nil }
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
    }

    /// A field of the table on top of the stack, if it is text or a number.
    private func field(_ name: String, _ state: OpaquePointer) -> [UInt8]? {
        guard unsafe lua_type(state, -1) == LUA_TTABLE else { return nil }
        unsafe push(name, state)
        unsafe lua_rawget(state, -2)
        defer { unsafe lua_settop(state, -2) }
        return unsafe text(at: -1, state)
    }

    private func push(_ text: String, _ state: OpaquePointer) { unsafe push(Array(text.utf8), state) }

    private func push(_ bytes: [UInt8], _ state: OpaquePointer) {
        unsafe bytes.withUnsafeBytes { buffer in
            unsafe lua_pushlstring(state, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
        }
    }

    private func push(_ reply: Reply, _ state: OpaquePointer) {
        guard unsafe lua_checkstack(state, 4) != 0 else { return }
        switch reply {
        case .integer(let number): unsafe lua_pushnumber(state, Double(number))
        case .bytes(let bytes): unsafe push(bytes, state)
        case .nothing: unsafe lua_pushboolean(state, 0)
        case .array(let replies): unsafe push(list: replies, state)
        case .status(let text): unsafe push(field: "ok", text, state)
        case .error(let error): unsafe push(field: "err", error.text, state)
        }
    }

    private func push(field name: String, _ text: String, _ state: OpaquePointer) {
        unsafe lua_createtable(state, 0, 1)
        unsafe push(name, state)
        unsafe push(text, state)
        unsafe lua_rawset(state, -3)
    }

    private func push(list: [Reply], _ state: OpaquePointer) {
        unsafe lua_createtable(state, Int32(list.count), 0)
        for (index, reply) in list.enumerated() {
            unsafe push(reply, state)
            unsafe lua_rawseti(state, -2, Int32(index + 1))
        }
    }

    /// What a script has returned: numbers lose their fraction, and a list ends with its first nil.
    private func reply(at index: Int32, _ state: OpaquePointer) -> Reply {
        guard unsafe lua_checkstack(state, 4) != 0 else { return .error(CommandError("ERR reached lua stack limit")) }
        switch unsafe lua_type(state, index) {
        case LUA_TSTRING: return .bytes(unsafe text(at: index, state) ?? [])
        case LUA_TNUMBER: return .integer(Int64(redis: unsafe lua_tonumber(state, index)))
        case LUA_TBOOLEAN: return unsafe lua_toboolean(state, index) != 0 ? .integer(1) : .nothing
        case LUA_TTABLE: break
        default: return .nothing
        }
        if let text = unsafe field("err", state) { return .error(CommandError(text.text)) }
        if let text = unsafe field("ok", state) { return .status(text.text) }
        var replies: [Reply] = []
        while true {
            unsafe lua_rawgeti(state, -1, Int32(replies.count + 1))
            let isEnd = unsafe lua_type(state, -1) == LUA_TNIL
            if !isEnd { replies.append(unsafe reply(at: -1, state)) }
            unsafe lua_settop(state, -2)
            if isEnd { return .array(replies) }
        }
    }

    /// What scripts see. Reading an unknown global variable and setting any are errors, as in Redis. What the gateway's
    /// scripts do not need of Lua is left out, such as `pcall`, which Redis has changed, and whatever is random.
    private static let environment = """
        local command, protected = ...
        local getinfo, type, tostring, error, sub, find =
            debug.getinfo, type, tostring, error, string.sub, string.find
        local globals = {}
        for _, name in ipairs({'assert', 'error', 'ipairs', 'next', 'pairs', 'select', 'tonumber', 'tostring', 'type',
            'unpack', 'string', 'table'}) do
            globals[name] = _G[name]
        end
        globals.math = {}
        for name, value in pairs(math) do
            if sub(name, 1, 6) ~= 'random' then globals.math[name] = value end
        end
        globals.redis = {
            call = command, pcall = protected,
            status_reply = function(text) return {ok = text} end,
            error_reply = function(text)
                if sub(text, 1, 1) == '-' then text = sub(text, 2) end
                if not find(text, ' ', 1, true) then text = 'ERR ' .. text end
                return {err = text}
            end,
        }
        setmetatable(globals, {__index = function(_, name)
            error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
        end})
        local sandbox = setmetatable({}, {
            __index = globals,
            __newindex = function() error('Attempt to modify a readonly table', 2) end,
        })
        local function handler(message)
            if type(message) ~= 'table' then message = {err = 'ERR ' .. tostring(message)} end
            local level = 2
            local frame = getinfo(level, 'Sl')
            while frame and frame.source ~= '@user_script' do
                level = level + 1
                frame = getinfo(level, 'Sl')
            end
            if frame then message.source, message.line = frame.source, frame.currentline end
            return message
        end
        return globals, sandbox, handler
        """
}

extension Int64 {
    /// As a 64-bit x86 converts a number; what does not fit is the smallest one.
    fileprivate init(redis number: Double) {
        self = Int64(exactly: number.rounded(.towardZero)) ?? .min
    }
}
