import Foundation

/// Reads messages from a socket, strictly: what it accepts is well-formed.
package final class MessageReader {
    private let socket: RawSocket
    private var buffer: [UInt8] = []
    private var position = 0

    package init(_ socket: RawSocket) { self.socket = socket }

    /// Bytes that came and belong to no message yet.
    package var pending: [UInt8] { Array(buffer[position...]) }

    /// The next head, or `nil` where the connection ends before its first byte.
    package func readHead(within limit: Duration = .seconds(20)) throws -> HTTPMessage? {
        let deadline = Deadline(in: limit)
        var search = position
        while true {
            if let end = find([13, 10, 13, 10], from: search) {
                let head = Array(buffer[position..<end + 4])
                position = end + 4
                return try HTTPMessage(head: head)
            }
            search = max(position, buffer.count - 3)
            guard try fill(deadline) else {
                if position == buffer.count { return nil }
                throw TestFailure("the connection ended within a head: \(String(decoding: pending, as: UTF8.self))")
            }
        }
    }

    /// The next response with its body, interim responses (1xx) collected into `interim`.
    package func readResponse(
        to method: String = "GET", interim: inout [HTTPMessage], within limit: Duration = .seconds(20)
    ) throws -> HTTPMessage {
        let deadline = Deadline(in: limit)
        while true {
            let left = Duration.milliseconds(deadline.milliseconds)
            guard var message = try readHead(within: left) else { throw TestFailure("closed without a response") }
            if (100..<200).contains(message.status), message.status != 101 {
                interim.append(message)
                continue
            }
            let bodiless = method == "HEAD" || [101, 204, 304].contains(message.status)
            if !bodiless { try readBody(of: &message, untilClose: true, deadline) }
            return message
        }
    }

    /// The body of a request whose head has come.
    package func readRequestBody(of message: inout HTTPMessage, within limit: Duration = .seconds(20)) throws {
        try readBody(of: &message, untilClose: false, Deadline(in: limit))
    }

    private func readBody(of message: inout HTTPMessage, untilClose: Bool, _ deadline: Deadline) throws {
        if let coding = message["transfer-encoding"] {
            guard coding.lowercased() == "chunked" else { throw TestFailure("transfer coding \(coding)") }
            try readChunks(of: &message, deadline)
        } else if let text = message["content-length"] {
            guard let length = Int(text) else { throw TestFailure("content length \(text)") }
            guard let bytes = try take(length, deadline) else { return truncate(&message) }
            message.body = bytes
            message.rawBody = bytes
        } else if untilClose {
            while try fill(deadline) {}
            message.body = pending
            message.rawBody = message.body
            message.end = .closed
            position = buffer.count
        }
    }

    private func truncate(_ message: inout HTTPMessage) {
        message.rawBody += pending
        if message["transfer-encoding"] == nil { message.body = message.rawBody }
        message.end = .truncated
        position = buffer.count
    }

    private func readChunks(of message: inout HTTPMessage, _ deadline: Deadline) throws {
        while true {
            guard let line = try readLine(deadline, into: &message) else { return truncate(&message) }
            let digits = line.prefix { $0 != ";" }
            guard let size = Int(digits, radix: 16) else { throw TestFailure("chunk size \(line.debugDescription)") }
            if size == 0 { break }
            guard let data = try take(size + 2, deadline) else { return truncate(&message) }
            guard data.suffix(2) == [13, 10] else { throw TestFailure("no line end behind a chunk") }
            message.body += data.dropLast(2)
            message.rawBody += data
        }
        while true {
            guard let line = try readLine(deadline, into: &message) else { return truncate(&message) }
            if line.isEmpty { return }
            message.trailers.append(try HTTPMessage.field(line))
        }
    }

    private func readLine(_ deadline: Deadline, into message: inout HTTPMessage) throws -> String? {
        while true {
            if let end = find([13, 10], from: position) {
                let line = Array(buffer[position..<end])
                position = end + 2
                message.rawBody += line + [13, 10]
                return String(decoding: line, as: UTF8.self)
            }
            guard try fill(deadline) else { return nil }
        }
    }

    private func take(_ count: Int, _ deadline: Deadline) throws -> [UInt8]? {
        while buffer.count - position < count {
            guard try fill(deadline) else { return nil }
        }
        let bytes = Array(buffer[position..<position + count])
        position += count
        if position > 1 << 20 {
            buffer.removeFirst(position)
            position = 0
        }
        return bytes
    }

    /// Reads more; `false` at the end of the stream, which a reset is too.
    private func fill(_ deadline: Deadline) throws -> Bool {
        do {
            let bytes = try socket.receive(atMost: 1 << 18, within: .milliseconds(deadline.milliseconds))
            buffer += bytes
            return !bytes.isEmpty
        } catch let failure as TestFailure where failure.description.contains("reset") {
            return false
        }
    }

    private func find(_ pattern: [UInt8], from start: Int) -> Int? {
        var index = start
        while let first = buffer[index...].firstIndex(of: pattern[0]) {
            guard first + pattern.count <= buffer.count else { return nil }
            if buffer[first..<first + pattern.count].elementsEqual(pattern) { return first }
            index = first + 1
        }
        return nil
    }
}
