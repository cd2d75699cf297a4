package import MartletConfig
internal import MartletCore
package import MartletHTTP
internal import MartletResponder

/// Which pages of other origins may use a route, and the fields that tell browsers so (Fetch standard, CORS protocol).
package final class CrossOriginRules: Sendable {
    /// An origin, or the origins below a domain, as bytes.
    private enum Pattern: Sendable {
        case exact([UInt8])
        case below(prefix: [UInt8], suffix: [UInt8])
    }

    private static let null = Array("null".utf8)

    private let allowsAny: Bool
    private let allowsNull: Bool
    private let patterns: [Pattern]
    /// The lines that each response to an allowed page has behind its origin.
    private let lines: [UInt8]
    private let preflight: [(name: String, value: String)]

    package init(_ configuration: CrossOriginConfiguration) {
        allowsAny = configuration.origins.contains(.any)
        allowsNull = configuration.origins.contains(.null)
        patterns = configuration.origins.compactMap { origin in
            switch origin {
            case .any, .null: nil
            case .exact(let text): .exact(Array(text.utf8))
            case .subdomains(let prefix, let suffix): .below(prefix: Array(prefix.utf8), suffix: Array(suffix.utf8))
            }
        }
        var lines = ""
        if configuration.allowsCredentials { lines += "Access-Control-Allow-Credentials: true\r\n" }
        if !configuration.exposed.isEmpty {
            lines += "\(CrossOriginFields.exposing)\(configuration.exposed.joined(separator: ", "))\r\n"
        }
        self.lines = Array(lines.utf8)
        var preflight = [
            (name: "Access-Control-Allow-Methods", value: configuration.methods.joined(separator: ", "))
        ]
        if !configuration.headers.isEmpty {
            preflight.append(("Access-Control-Allow-Headers", configuration.headers.joined(separator: ", ")))
        }
        if let age = configuration.maximumAge { preflight.append(("Access-Control-Max-Age", "\(age.wholeSeconds)")) }
        self.preflight = preflight
    }

    /// The fields of the response to a preflight besides those that each response has.
    ///
    /// They are the same for every preflight of an allowed page, whatever it asks for: what is not listed is not allowed.
    package func preflightFields(isAllowed: Bool) -> [(name: String, value: String)] {
        [("Cache-Control", "no-store")] + (isAllowed ? preflight : [])
    }

    /// What the response to a request tells the page that sent it.
    package func fields(for fields: borrowing FieldList, _ bytes: Span<UInt8>) -> CrossOriginFields {
        guard case .once(let range) = fields.occurrence(of: "origin", in: bytes) else { return .refusing }
        let origin = bytes.extracting(range.bounds)
        guard allowsAny || allowsNull && Self.equal(origin, Self.null) || isNamed(origin) else { return .refusing }
        var allowed = Array("Access-Control-Allow-Origin: ".utf8)
        if allowsAny {
            allowed.append(UInt8(ascii: "*"))
        } else {
            for index in 0..<origin.count { allowed.append(origin[index]) }
        }
        return CrossOriginFields(lines: allowed + [0x0D, 0x0A] + lines)
    }

    /// The origin of a request as a list, if it is one that the rules name; neither `*` nor `null` names one.
    func namedOrigin(of fields: borrowing FieldList, _ bytes: Span<UInt8>) -> [String] {
        guard case .once(let range) = fields.occurrence(of: "origin", in: bytes) else { return [] }
        let origin = bytes.extracting(range.bounds)
        guard isNamed(origin) else { return [] }
        return [String(decoding: (0..<origin.count).map { origin[$0] }, as: UTF8.self)]
    }

    private func isNamed(_ origin: Span<UInt8>) -> Bool {
        for pattern in patterns {
            switch pattern {
            case .exact(let text): if Self.equal(origin, text) { return true }
            case .below(let prefix, let suffix): if Self.isBelow(origin, prefix, suffix) { return true }
            }
        }
        return false
    }

    private static func equal(_ origin: Span<UInt8>, _ text: [UInt8]) -> Bool {
        origin.count == text.count && text.indices.allSatisfy { origin[$0] == text[$0] }
    }

    /// Whether one or more labels, and no port, are between the scheme and the domain.
    private static func isBelow(_ origin: Span<UInt8>, _ prefix: [UInt8], _ suffix: [UInt8]) -> Bool {
        let end = origin.count - suffix.count
        guard end > prefix.count, equal(origin.extracting(0..<prefix.count), prefix),
            equal(origin.extracting(end..<origin.count), suffix)
        else { return false }
        var isStart = true
        for index in prefix.count..<end {
            let byte = origin[index]
            if byte == UInt8(ascii: ".") {
                if isStart { return false }
                isStart = true
            } else {
                guard byte &- 0x61 < 26 || byte &- 0x30 < 10 || byte == 0x2D || byte == 0x5F else { return false }
                isStart = false
            }
        }
        return !isStart
    }

    /// Where the method that a preflight asks about is; `nil` if the request is none.
    package static func requestedMethod(_ fields: borrowing FieldList, _ bytes: Span<UInt8>) -> ByteRange? {
        guard fields.occurrence(of: "origin", in: bytes) != .absent else { return nil }
        for index in 0..<fields.count where names(fields[index].name, in: bytes, requestMethod) {
            return fields[index].value
        }
        return nil
    }

    private static let requestMethod = Array("access-control-request-method".utf8)

    private static func names(_ range: ByteRange, in bytes: Span<UInt8>, _ name: [UInt8]) -> Bool {
        guard range.count == name.count else { return false }
        let text = bytes.extracting(range.bounds)
        return name.indices.allSatisfy { index in
            let byte = text[index]
            return (byte &- 0x41 < 26 ? byte | 0x20 : byte) == name[index]
        }
    }
}

/// What one response tells the page that sent the request.
///
/// A class, so that an exchange without it only has a reference.
package final class CrossOriginFields: Sendable {
    /// For a page that may not use the route, and for requests that no page sent.
    static let refusing = CrossOriginFields(lines: [])

    private static let access = Array("access-control-".utf8)
    private static let vary = Array("vary".utf8)
    private static let varyLine = Array("Vary: Origin\r\n".utf8)

    /// The fields that pages may read of each response of the gateway itself, and of one to a caller of gRPC-Web.
    private static let own = "\(Failure.exposedFields)".split(separator: ", ").map(String.init)
    private static let status = ["Grpc-Status", "Grpc-Message"]
    private static let statusName = Array("grpc-status".utf8)

    /// What the line begins with that names the fields which a page may read.
    static let exposing = "Access-Control-Expose-Headers: "

    /// Complete lines, the last of which may be that of the fields which pages may read of all responses.
    private let lines: [UInt8]

    package init(lines: [UInt8]) { self.lines = lines }

    /// The lines of a response as texts, for explanations.
    /// - Parameter isOwn: whether it is one of the gateway itself.
    package func texts(isOwn: Bool) -> [String] {
        var head: [UInt8] = []
        edit([0x0D, 0x0A].span, isOwn: isOwn, into: &head)
        return head.split { $0 == 0x0D || $0 == 0x0A }.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Whether the page may read the response.
    package var isAllowed: Bool { !lines.isEmpty }

    /// The head of a response with these fields in place of the upstream's; caches keep it apart by its `Origin`.
    ///
    /// - Parameter isOwn: whether the head is one of the gateway itself, whose fields stay.
    package func edit(_ head: Span<UInt8>, isOwn: Bool, into out: inout [UInt8]) {
        var varies = false
        var hasStatus = false
        ResponseFieldRules.forEachLine(of: head) { line in
            if isOwn, ResponseFieldRules.names(line, Self.statusName) { hasStatus = true }
            if !isOwn, ResponseFieldRules.begins(line, with: Self.access) {
                return
            } else if ResponseFieldRules.names(line, Self.vary) {
                varies = varies || Self.namesOrigin(line)
            }
            ResponseFieldRules.append(line, to: &out)
        }
        if isOwn { appendOwn(hasStatus: hasStatus, to: &out) } else { out += lines }
        if !varies { out += Self.varyLine }
    }

    /// Appends the lines of a response of the gateway itself, of which an allowed page may read more.
    @inline(never)
    private func appendOwn(hasStatus: Bool, to out: inout [UInt8]) {
        guard isAllowed else { return }
        let more = Self.own + (hasStatus ? Self.status : [])
        var names: [String] = []
        for line in String(decoding: lines, as: UTF8.self).split(separator: "\r\n") {
            if line.hasPrefix(Self.exposing) {
                names = line.dropFirst(Self.exposing.count).split(separator: ", ").map(String.init)
            } else {
                out += Array("\(line)\r\n".utf8)
            }
        }
        for name in more where !names.contains(where: { $0.lowercased() == name.lowercased() }) { names.append(name) }
        out += Array("\(Self.exposing)\(names.joined(separator: ", "))\r\n".utf8)
    }

    /// Whether a `Vary` line lists `Origin`.
    private static func namesOrigin(_ line: Span<UInt8>) -> Bool {
        let value = (vary.count + 1..<line.count).map { line[$0] &- 0x41 < 26 ? line[$0] | 0x20 : line[$0] }
        return value.split { $0 == UInt8(ascii: ",") || $0 <= 0x20 }.contains { $0.elementsEqual("origin".utf8) }
    }
}
