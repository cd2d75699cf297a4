import WorldRedis

/// Servers with a clock, and clients that are read as text.
final class Stage {
    private final class Time { var now: Int64 = 1_000_000 }

    let engine = ScriptEngine()
    private let time = Time()
    /// A peer alone does not keep its server.
    private var servers: [RedisModel] = []

    var now: Int64 {
        get { time.now }
        set { time.now = newValue }
    }

    var clock: () -> Int64 { { [time] in time.now } }

    func address(_ port: Int) -> RedisAddress { RedisAddress(host: "h", port: port) }

    /// A server alone.
    func server() -> RedisModel {
        let server = RedisModel(at: address(1), engine: engine, clock: clock)
        servers.append(server)
        return server
    }
}

extension RedisPeer {
    /// Sends commands, one in each line, and returns their replies with `|` for line ends.
    func call(_ commands: String) -> String {
        send(commands.split(separator: "\n").map { $0.split(separator: " ").map(String.init) })
    }

    /// Sends one command.
    func call(words: String...) -> String { send([words]) }

    private func send(_ commands: [[String]]) -> String {
        receive(commands.flatMap { RedisPeer.encoded($0) })
        return take()
    }

    /// What has been sent to the client.
    func take() -> String {
        defer { output = [] }
        return String(decoding: output, as: UTF8.self).split(separator: "\r\n").joined(separator: "|")
    }

    static func encoded(_ words: [String]) -> [UInt8] {
        Array("*\(words.count)\r\n".utf8) + words.flatMap { Array("$\($0.utf8.count)\r\n\($0)\r\n".utf8) }
    }
}
