/// Reads commands (arrays of strings in RESP) that come in pieces, or several in one piece.
struct CommandParser {
    private static let maximumArguments = 1024 * 1024
    private static let maximumBytes = 512 * 1024 * 1024
    private static let maximumLine = 64 * 1024

    private var buffer: [UInt8] = []
    private var position = 0
    private var arguments: [[UInt8]] = []
    /// How many arguments are still to come; `nil` between commands.
    private var missing: Int?
    /// The length of the next argument, once it is known.
    private var length: Int?

    mutating func append(_ bytes: [UInt8]) {
        buffer.removeFirst(position)
        position = 0
        buffer += bytes
    }

    /// The next complete command; `nil` until there is one.
    mutating func next() throws(CommandError) -> [[UInt8]]? {
        while true {
            if missing == nil {
                guard let count = try header() else { return nil }
                // An empty command is none.
                guard count > 0 else { continue }
                missing = count
            }
            while let left = missing, left > 0 {
                guard let argument = try argument() else { return nil }
                arguments.append(argument)
                missing = left - 1
            }
            missing = nil
            defer { arguments = [] }
            return arguments
        }
    }

    private mutating func header() throws(CommandError) -> Int? {
        guard position < buffer.count else { return nil }
        guard buffer[position] == UInt8(ascii: "*") else {
            throw CommandError("ERR Protocol error: inline commands are not modeled")
        }
        guard let line = try line() else { return nil }
        guard let count = line.integer, count <= Self.maximumArguments else {
            throw CommandError("ERR Protocol error: invalid multibulk length")
        }
        return Int(count)
    }

    private mutating func argument() throws(CommandError) -> [UInt8]? {
        if length == nil {
            guard position < buffer.count else { return nil }
            guard buffer[position] == UInt8(ascii: "$") else {
                let found = String(decoding: [buffer[position]], as: UTF8.self)
                throw CommandError("ERR Protocol error: expected '$', got '\(found)'")
            }
            guard let line = try line() else { return nil }
            guard let count = line.integer, (0...Int64(Self.maximumBytes)).contains(count) else {
                throw CommandError("ERR Protocol error: invalid bulk length")
            }
            length = Int(count)
        }
        guard let length, buffer.count - position >= length + 2 else { return nil }
        defer {
            position += length + 2
            self.length = nil
        }
        return Array(buffer[position..<(position + length)])
    }

    /// The rest of a line behind its first byte; `nil` until it is complete.
    private mutating func line() throws(CommandError) -> [UInt8]? {
        guard let end = buffer[position...].firstIndex(of: 0x0D), end + 1 < buffer.count else {
            guard buffer.count - position < Self.maximumLine else {
                throw CommandError("ERR Protocol error: too big mbulk count string")
            }
            return nil
        }
        defer { position = end + 2 }
        return Array(buffer[(position + 1)..<end])
    }
}
