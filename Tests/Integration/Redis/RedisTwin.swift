import MartletTesting
import WorldRedis

/// A real server and the model of one, which get the same commands and have to give the same replies, byte for byte.
///
/// What may differ is the order of names in a scan, and times by the moment between the two. The words of errors are those
/// of Redis 7.0; another server's error is only an error.
final class RedisTwin {
    let model: RedisModel
    private let port: UInt16
    /// The scripts that were sent, by their digests.
    private var scripts: [String: String] = [:]
    /// Every run of a script, with its text.
    private(set) var scriptRuns: [[[UInt8]]] = []
    private(set) var commands = 0
    /// The replies that differ, with their commands.
    private(set) var differences: [String] = []

    /// Whether the server program is of the version that the model is of.
    static let isModeled = (try? run(try RedisProgram.path(), ["--version"]).output.contains(" v=7.0.")) ?? false

    init(of port: UInt16, _ model: RedisModel) {
        self.port = port
        self.model = model
    }

    /// The number of different scripts that have run.
    var scriptCount: Int { Set(scriptRuns.map { $0[1] }).count }

    func connect() throws -> Connection { try Connection(self) }

    private func compare(_ command: [[UInt8]], _ real: [UInt8], _ modeled: [UInt8]) {
        commands += 1
        if let script = digest(of: command).flatMap({ scripts[$0] }) {
            scriptRuns.append([Array("EVAL".utf8), Array(script.utf8)] + command.dropFirst(2))
        }
        guard real != modeled, !isSame(command, lines(real), lines(modeled)) else { return }
        let words = command.map { String(decoding: $0.prefix(200), as: UTF8.self) }.joined(separator: " ")
        differences.append("\(words)\n  real:  \(lines(real))\n  model: \(lines(modeled))")
    }

    private func lines(_ reply: [UInt8]) -> [String] {
        String(decoding: reply, as: UTF8.self).split(separator: "\r\n").map(String.init)
    }

    private func isSame(_ command: [[UInt8]], _ real: [String], _ modeled: [String]) -> Bool {
        let isError = real.first?.first == "-" && modeled.first?.first == "-"
        if isError, !Self.isModeled { return true }
        let name = String(decoding: command[0], as: UTF8.self).uppercased()
        // Nodes choose their IDs.
        if name == "CLUSTER" { return real.filter { $0.utf8.count != 40 } == modeled.filter { $0.utf8.count != 40 } }
        if name == "SCAN" { return real.sorted() == modeled.sorted() }
        if name == "ROLE" { return withoutOffsets(real) == withoutOffsets(modeled) }
        if name == "SENTINEL", !isError { return fields(modeled).isSubset(of: fields(real)) }
        guard name == "PTTL" || isTimed(command), real.count == modeled.count else { return false }
        return zip(real, modeled).allSatisfy { left, right in
            guard left != right, left.first == ":", let first = Int(left.dropFirst()), first > 1000,
                right.first == ":", let second = Int(right.dropFirst())
            else { return left == right }
            // A busy machine may take its time between the two.
            return abs(first - second) <= max(50, first / 50)
        }
    }

    /// A server counts bytes, and its model writes.
    private func withoutOffsets(_ role: [String]) -> [String] {
        role.enumerated().map { index, line in
            if role.contains("slave") { return index == 8 ? ":" : line }
            // That of the master, and those of replicas with their lengths.
            return index == 3 || (index > 9 && [3, 4].contains(index % 7)) ? ":" : line
        }
    }

    /// What a sentinel says of servers, which choose their IDs; a server says more.
    private func fields(_ reply: [String]) -> Set<String> {
        let texts = reply.filter { $0.first != "$" && $0.first != "*" }
        let pairs = stride(from: 0, to: texts.count - 1, by: 2).map { "\(texts[$0])=\(texts[$0 + 1])" }
        return Set(pairs.filter { !$0.hasPrefix("runid=") && !($0.hasPrefix("name=") && $0.utf8.count == 45) })
    }

    private func isTimed(_ command: [[UInt8]]) -> Bool {
        guard let digest = digest(of: command), let script = scripts[digest] else { return false }
        return script.contains("'PTTL'") || script.contains("'TIME'")
    }

    /// The digest of the script that a command runs.
    private func digest(of command: [[UInt8]]) -> String? {
        guard command.count > 1 else { return nil }
        switch String(decoding: command[0], as: UTF8.self).uppercased() {
        case "EVAL":
            let text = String(decoding: command[1], as: UTF8.self)
            let digest = RedisModel.scriptDigest(command[1])
            scripts[digest] = text
            return digest
        case "EVALSHA": return String(decoding: command[1], as: UTF8.self).lowercased()
        default: return nil
        }
    }

    /// A client of both.
    final class Connection {
        private let twin: RedisTwin
        private let socket: RawSocket
        private let peer: RedisPeer
        private var received: [UInt8] = []

        fileprivate init(_ twin: RedisTwin) throws {
            self.twin = twin
            socket = try RawSocket(connectingTo: .loopback(twin.port))
            peer = twin.model.connect()
        }

        deinit { peer.close() }

        /// Sends a command to both.
        /// - Returns: the real reply.
        @discardableResult
        func send(_ command: [[UInt8]]) throws -> [UInt8] {
            let bytes = RESP.command(command)
            try socket.send(bytes)
            peer.receive(bytes)
            let real = try nextReply()
            // A wait ends with its time.
            while peer.output.isEmpty, twin.model.nextDeadline != nil { twin.model.advance() }
            twin.compare(command, real, take())
            return real
        }

        /// Sends commands of words, one in each line, and a script as what stands between backticks.
        func send(lines: String) throws {
            for line in lines.split(separator: "\n") {
                let parts = line.split(separator: "`", omittingEmptySubsequences: false)
                let words = parts.enumerated().flatMap { index, part in
                    index.isMultiple(of: 2) ? part.split(separator: " ") : [part]
                }
                try send(words.map { Array($0.utf8) })
            }
        }

        /// Sends a command of words.
        @discardableResult
        func send(_ words: String...) throws -> [UInt8] { try send(words.map { Array($0.utf8) }) }

        /// Compares what else has come: messages.
        func compareMessages() throws {
            let modeled = take()
            var real: [UInt8] = []
            while real.count < modeled.count { real += try nextReply() }
            if !socket.isSilent(for: .milliseconds(20)) { real += try nextReply() }
            twin.compare([Array("messages".utf8)], real, modeled)
        }

        private func take() -> [UInt8] {
            defer { peer.output = [] }
            return peer.output
        }

        private func nextReply() throws -> [UInt8] {
            while true {
                if let end = RESP.end(of: received, from: 0) {
                    defer { received.removeFirst(end) }
                    return Array(received[..<end])
                }
                let more = try socket.receive()
                guard !more.isEmpty else { throw TestFailure("the server has closed the connection") }
                received += more
            }
        }
    }
}

/// The form of commands and replies (RESP2).
enum RESP {
    static func command(_ words: [[UInt8]]) -> [UInt8] {
        Array("*\(words.count)\r\n".utf8) + words.flatMap { Array("$\($0.count)\r\n".utf8) + $0 + [0x0D, 0x0A] }
    }

    /// Where the value ends that begins at an index; `nil` if it is incomplete.
    static func end(of bytes: [UInt8], from start: Int) -> Int? {
        guard start < bytes.count, let line = bytes[start...].firstIndex(of: 0x0A) else { return nil }
        let number = Int(String(decoding: bytes[(start + 1)..<(line - 1)], as: UTF8.self)) ?? 0
        switch bytes[start] {
        case UInt8(ascii: "$"):
            let end = line + 1 + (number < 0 ? 0 : number + 2)
            return end <= bytes.count ? end : nil
        case UInt8(ascii: "*"):
            var next = line + 1
            for _ in 0..<max(number, 0) {
                guard let end = end(of: bytes, from: next) else { return nil }
                next = end
            }
            return next
        default: return line + 1
        }
    }

    /// The words of a complete command.
    static func words(_ bytes: [UInt8]) -> [[UInt8]] {
        var (words, next) = ([[UInt8]](), (bytes.firstIndex(of: 0x0A) ?? 0) + 1)
        while let end = end(of: bytes, from: next), let line = bytes[next...].firstIndex(of: 0x0A) {
            words.append(Array(bytes[(line + 1)..<(end - 2)]))
            next = end
        }
        return words
    }
}
