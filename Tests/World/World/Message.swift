/// The head of a message of HTTP/1.
struct MessageHead {
    var start = ""
    var fields: [(name: String, value: String)] = []

    /// The only value of a field; `nil` without one or with several.
    func value(_ name: String) -> String? {
        let found = fields.filter { $0.name.lowercased() == name }
        return found.count == 1 ? found[0].value : nil
    }

    /// The status of a response.
    var status: Int { Int(start.split(separator: " ").dropFirst().first ?? "") ?? 0 }
    /// The target of a request.
    var target: String { String(start.split(separator: " ").dropFirst().first ?? "") }
    var method: String { String(start.split(separator: " ").first ?? "") }
}

/// Reads messages of HTTP/1 as a strict reader would: what is not well-formed is reported, never repaired.
struct MessageReader {
    enum Piece {
        case head(MessageHead)
        case body([UInt8])
        /// With the fields of the trailer.
        case end([(name: String, value: String)])
        case invalid(String)
    }

    private enum State {
        case head
        case length(Int)
        case chunkSize
        case chunk(Int)
        case chunkEnd
        case trailer
        case untilEnd
        case broken
    }

    private var bytes: [UInt8] = []
    private var first = 0
    private var state = State.head
    private var lines: [String] = []
    /// Whether what is read are responses.
    let isResponse: Bool
    /// For each response: whether its request was HEAD.
    var headRequests: [Bool] = []

    init(isResponse: Bool) { self.isResponse = isResponse }

    /// Whether no message has begun that has not ended.
    var isBetween: Bool {
        if case .head = state { return lines.isEmpty && first == bytes.count }
        return false
    }

    mutating func read(_ more: [UInt8]) -> [Piece] {
        bytes += more
        var pieces: [Piece] = []
        while let piece = next() { pieces.append(piece) }
        if first > 0 {
            bytes.removeFirst(first)
            first = 0
        }
        return pieces
    }

    /// The connection has ended.
    /// - Returns: whether a message ends with it.
    mutating func endsMessage() -> Bool {
        if case .untilEnd = state {
            state = .head
            return true
        }
        return false
    }

    private mutating func next() -> Piece? {
        switch state {
        case .broken: return nil
        case .head:
            guard let line = line() else { return nil }
            if !line.isEmpty {
                lines.append(line)
                return next()
            }
            guard !lines.isEmpty else { return next() }
            return head()
        case .length(let left):
            if left == 0 {
                state = .head
                return .end([])
            }
            guard let part = part(left) else { return nil }
            state = .length(left - part.count)
            return .body(part)
        case .chunkSize:
            guard let line = line() else { return nil }
            let digits = line.split(separator: ";", omittingEmptySubsequences: false)[0]
            guard let size = Int(digits, radix: 16), size >= 0 else { return invalid("chunk size '\(line)'") }
            state = size == 0 ? .trailer : .chunk(size)
            return next()
        case .chunk(let left):
            guard let part = part(left) else { return nil }
            state = left == part.count ? .chunkEnd : .chunk(left - part.count)
            return .body(part)
        case .chunkEnd:
            guard let line = line() else { return nil }
            guard line.isEmpty else { return invalid("chunk without its end") }
            state = .chunkSize
            return next()
        case .trailer:
            guard let line = line() else { return nil }
            if !line.isEmpty {
                lines.append(line)
                return next()
            }
            let fields = lines.compactMap(Self.field)
            lines = []
            state = .head
            return .end(fields)
        case .untilEnd:
            return part(.max).map { .body($0) }
        }
    }

    private mutating func part(_ most: Int) -> [UInt8]? {
        guard first < bytes.count else { return nil }
        let end = first + min(most, bytes.count - first)
        defer { first = end }
        return Array(bytes[first..<end])
    }

    private mutating func line() -> String? {
        guard let end = bytes[first...].firstIndex(of: 10) else { return nil }
        guard end > first, bytes[end - 1] == 13 else {
            state = .broken
            return "\u{0}bare LF"
        }
        defer { first = end + 1 }
        return String(decoding: bytes[first..<end - 1], as: UTF8.self)
    }

    private mutating func invalid(_ reason: String) -> Piece {
        state = .broken
        return .invalid(reason)
    }

    private static func field(_ line: String) -> (name: String, value: String)? {
        guard let colon = line.firstIndex(of: ":") else { return nil }
        let value = line[line.index(after: colon)...].drop { $0 == " " }
        return (String(line[..<colon]), String(value))
    }

    private mutating func head() -> Piece? {
        var head = MessageHead()
        head.start = lines[0]
        for line in lines.dropFirst() {
            guard let field = Self.field(line) else { return invalid("field '\(line)'") }
            head.fields.append(field)
        }
        lines = []
        if isResponse, !head.start.hasPrefix("HTTP/1.") { return invalid("status line '\(head.start)'") }
        if !isResponse, !head.start.hasSuffix(" HTTP/1.1") { return invalid("request line '\(head.start)'") }
        let lengths = head.fields.filter { $0.name.lowercased() == "content-length" }
        let codings = head.fields.filter { $0.name.lowercased() == "transfer-encoding" }
        if lengths.count > 1 || codings.count > 1 || (!lengths.isEmpty && !codings.isEmpty) {
            return invalid("two framings")
        }
        let status = head.status
        if isResponse, status / 100 == 1 {
            state = status == 101 ? .untilEnd : .head
            return .head(head)
        }
        let isForHead = isResponse && !headRequests.isEmpty ? headRequests.removeFirst() : false
        if isForHead || (isResponse && (status == 204 || status == 304)) {
            state = .length(0)
        } else if let coding = codings.first {
            guard coding.value.lowercased() == "chunked" else { return invalid("coding '\(coding.value)'") }
            state = .chunkSize
        } else if let length = lengths.first {
            guard let count = Int(length.value), count >= 0 else { return invalid("length '\(length.value)'") }
            state = .length(count)
        } else {
            state = isResponse ? .untilEnd : .length(0)
        }
        return .head(head)
    }
}
