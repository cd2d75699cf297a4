import Foundation

/// A request or a response as sent on the connection.
package struct HTTPMessage: Sendable, CustomStringConvertible {
    /// One field, its name in the case it came in.
    package struct Field: Sendable, Equatable, CustomStringConvertible {
        package let name: String
        package let value: String

        package var description: String { "\(name): \(value)" }
    }

    /// How the body ended.
    package enum End: Sendable, Equatable {
        /// By its length or its last chunk, or there was none.
        case complete
        /// By the end of the connection, where that is what delimits it.
        case closed
        /// Before what was announced had come.
        case truncated
    }

    package var startLine: String
    package var fields: [Field]
    /// Without chunk framing.
    package var body: [UInt8] = []
    package var trailers: [Field] = []
    package var end = End.complete
    /// The head exactly as it came, with its empty line.
    package var rawHead: [UInt8]
    /// The body exactly as it came, with its framing.
    package var rawBody: [UInt8] = []

    /// The value of the only field of that name; several are joined by `, `, none is `nil`.
    package subscript(name: String) -> String? {
        let values = all(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The values of every field of that name, in order.
    package func all(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// The status of a response; 0 if the start line has none.
    package var status: Int { Int(startLine.split(separator: " ").dropFirst().first ?? "") ?? 0 }
    package var method: String { String(startLine.split(separator: " ").first ?? "") }
    package var target: String { String(startLine.split(separator: " ").dropFirst().first ?? "") }
    package var text: String { String(decoding: body, as: UTF8.self) }
    package var description: String {
        "\(startLine) | \(fields.map(\.description).joined(separator: " | ")) | \(end) \(text.prefix(400))"
    }

    /// A text member of the JSON object in the body.
    package func member(_ name: String) -> String? { object[name] as? String }

    /// The JSON object in the body; empty where it is none.
    package var object: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]) ?? [:]
    }

    /// Splits a head into its lines.
    init(head: [UInt8]) throws {
        rawHead = head
        let text = String(decoding: head, as: UTF8.self)
        var lines = text.components(separatedBy: "\r\n")
        guard lines.count >= 3, lines.removeLast().isEmpty, lines.removeLast().isEmpty else {
            throw TestFailure("not a head: \(text.debugDescription)")
        }
        startLine = lines.removeFirst()
        fields = try lines.map(Self.field)
    }

    static func field(_ line: String) throws -> Field {
        guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else {
            throw TestFailure("not a field: \(line.debugDescription)")
        }
        let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        return Field(name: String(line[..<colon]), value: value)
    }
}
