/// A reply, as it is written to a client (RESP2) or given to a script.
enum Reply: Equatable {
    case status(String)
    case error(CommandError)
    case integer(Int64)
    case bytes([UInt8])
    case nothing
    case array([Reply])

    static let ok = Reply.status("OK")

    static func text(_ text: String) -> Reply { .bytes(Array(text.utf8)) }
    static func count(_ count: Int) -> Reply { .integer(Int64(count)) }
}

/// An error reply: its code, a space, and a sentence.
struct CommandError: Error, Equatable {
    let text: String

    init(_ text: String) { self.text = text }

    static let syntax = CommandError("ERR syntax error")
    static let notAnInteger = CommandError("ERR value is not an integer or out of range")
    static let notAFloat = CommandError("ERR value is not a valid float")
    static let wrongType = CommandError("WRONGTYPE Operation against a key holding the wrong kind of value")

    static func argumentCount(_ command: String) -> CommandError {
        CommandError("ERR wrong number of arguments for '\(command)' command")
    }

    static func expiryTime(_ command: String) -> CommandError {
        CommandError("ERR invalid expire time in '\(command)' command")
    }
}

extension [UInt8] {
    mutating func append(_ reply: Reply) {
        switch reply {
        case .status(let text): appendLine("+", text)
        case .error(let error):
            append(UInt8(ascii: "-"))
            // A line end would be that of the reply.
            var text = error.text[...]
            while text.utf8.last == 0x0A || text.utf8.last == 0x0D { text.removeLast() }
            append(contentsOf: text.utf8.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 })
            append(contentsOf: [0x0D, 0x0A])
        case .integer(let number): appendLine(":", String(number))
        case .bytes(let bytes):
            appendLine("$", String(bytes.count))
            append(contentsOf: bytes)
            append(contentsOf: [0x0D, 0x0A])
        case .nothing: appendLine("$", "-1")
        case .array(let replies):
            appendLine("*", String(replies.count))
            for reply in replies { append(reply) }
        }
    }

    private mutating func appendLine(_ kind: Unicode.Scalar, _ text: String) {
        append(UInt8(ascii: kind))
        append(contentsOf: text.utf8)
        append(contentsOf: [0x0D, 0x0A])
    }
}
