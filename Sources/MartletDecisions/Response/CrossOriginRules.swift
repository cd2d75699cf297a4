package import MartletConfig
package import MartletCore
package import MartletHTTP
internal import MartletResponder

/// Which pages of other origins may use a route, and the fields that tell browsers so (Fetch standard, CORS protocol).
@safe package final class CrossOriginRules: Sendable {
    /// Where an origin stands in ``letters``, and what responses tell its pages, by its index into ``all``.
    private struct Named: Sendable {
        let range: Range<Int>
        let fields: Int
        /// `null` is an origin that names no page.
        let namesPage: Bool
    }

    /// What responses tell the pages of each origin that has a name; the first is for none.
    private let all: [CrossOriginFields]
    /// The same, to lend them without counting.
    private let lent: [Unmanaged<CrossOriginFields>]
    /// Whether the pages of every origin are allowed, to which the second of ``all`` belongs then.
    private let allowsAny: Bool
    private let named: [Named]
    private let letters: [UInt8]
    /// The origins below a domain.
    private let below: [(prefix: [UInt8], suffix: [UInt8])]
    /// The lines that each response to an allowed page has behind its origin.
    private let lines: [UInt8]
    private let preflight: [(name: String, value: String)]

    package init(_ configuration: CrossOriginConfiguration) {
        var lines = ""
        if configuration.allowsCredentials { lines += "Access-Control-Allow-Credentials: true\r\n" }
        if !configuration.exposed.isEmpty {
            lines += "\(CrossOriginFields.exposing)\(configuration.exposed.joined(separator: ", "))\r\n"
        }
        let common = Array(lines.utf8)
        self.lines = common
        allowsAny = configuration.origins.contains(.any)
        var all = [CrossOriginFields.refusing]
        if allowsAny { all.append(CrossOriginFields(allowing: Array("*".utf8).span, common)) }
        var named: [Named] = []
        var letters: [UInt8] = []
        for origin in configuration.origins {
            let text: String
            switch origin {
            case .any, .subdomains: continue
            case .null: text = "null"
            case .exact(let name): text = name
            }
            let bytes = Array(text.utf8)
            named.append(
                Named(
                    range: letters.count..<letters.count + bytes.count, fields: all.count, namesPage: origin != .null))
            letters += bytes
            all.append(CrossOriginFields(allowing: bytes.span, common))
        }
        (self.all, self.named, self.letters) = (all, named, letters)
        unsafe lent = all.map { unsafe Unmanaged.passUnretained($0) }
        below = configuration.origins.compactMap { origin in
            guard case .subdomains(let prefix, let suffix) = origin else { return nil }
            return (Array(prefix.utf8), Array(suffix.utf8))
        }
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
        let index = index(for: fields, bytes)
        if index > 0 { return all[index] }
        guard index < 0, case .once(let range) = fields.occurrence(of: "origin", in: bytes) else { return all[0] }
        return CrossOriginFields(allowing: bytes.extracting(range.bounds), lines)
    }

    /// Lends what the response to a request tells the page that sent it.
    @inline(__always)
    package func withFields(
        for fields: borrowing FieldList, _ bytes: Span<UInt8>, _ body: (CrossOriginFields) -> Void
    ) {
        let index = index(for: fields, bytes)
        guard index >= 0 else { return body(self.fields(for: fields, bytes)) }
        unsafe lent[index]._withUnsafeGuaranteedRef(body)
    }

    /// Which of ``all`` a request gets; −1 for a page below a domain, whose origin has no name.
    private func index(for fields: borrowing FieldList, _ bytes: Span<UInt8>) -> Int {
        guard case .once(let range) = fields.occurrence(of: "origin", in: bytes) else { return 0 }
        if allowsAny { return 1 }
        let origin = bytes.extracting(range.bounds)
        for index in named.indices where isOrigin(origin, index) { return named[index].fields }
        return isBelow(origin) ? -1 : 0
    }

    private func isOrigin(_ text: Span<UInt8>, _ index: Int) -> Bool {
        let range = named[index].range
        return unsafe letters.withUnsafeBufferPointer {
            unsafe text.isEqual(to: UnsafeBufferPointer(rebasing: $0[range]).span)
        }
    }

    /// The origin of a request as a list, if it is one that the rules name; neither `*` nor `null` names one.
    func namedOrigin(of fields: borrowing FieldList, _ bytes: Span<UInt8>) -> [String] {
        guard case .once(let range) = fields.occurrence(of: "origin", in: bytes) else { return [] }
        let origin = bytes.extracting(range.bounds)
        var isNamed = isBelow(origin)
        for index in named.indices where named[index].namesPage && isOrigin(origin, index) { isNamed = true }
        return isNamed ? [String(decoding: (0..<origin.count).map { origin[$0] }, as: UTF8.self)] : []
    }

    private func isBelow(_ origin: Span<UInt8>) -> Bool {
        for (prefix, suffix) in below where Self.isBelow(origin, prefix, suffix) { return true }
        return false
    }

    /// Whether one or more labels, and no port, are between the scheme and the domain.
    private static func isBelow(_ origin: Span<UInt8>, _ prefix: [UInt8], _ suffix: [UInt8]) -> Bool {
        let end = origin.count - suffix.count
        guard end > prefix.count, origin.extracting(0..<prefix.count).isEqual(to: prefix.span),
            origin.extracting(end..<origin.count).isEqual(to: suffix.span)
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
    package static let refusing = CrossOriginFields(lines: [])

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
    /// What is added to a head that has no field of this kind.
    private let added: [UInt8]

    package init(lines: [UInt8]) {
        self.lines = lines
        added = lines + Self.varyLine
    }

    /// For the pages of an origin.
    /// - Parameter lines: what comes behind it.
    fileprivate convenience init(allowing origin: Span<UInt8>, _ lines: [UInt8]) {
        var allowed = Array("Access-Control-Allow-Origin: ".utf8)
        for index in 0..<origin.count { allowed.append(origin[index]) }
        self.init(lines: allowed + [0x0D, 0x0A] + lines)
    }

    /// Adds them to a head that has no field of this kind.
    package func add(to head: inout ByteBuffer) { unsafe added.withUnsafeBufferPointer { unsafe head.append($0) } }

    /// Whether a head has no field that these would replace or join: by the first letters of its lines, which those of
    /// other fields rarely share.
    package static func concernsNoField(of head: Span<UInt8>) -> Bool {
        var start = 0
        while start < head.count {
            let letter = head[start] | 0x20
            if letter == UInt8(ascii: "v") || letter == UInt8(ascii: "a") {
                let line = head.extracting(start...)
                if ResponseFieldRules.begins(line, with: access) || ResponseFieldRules.names(line, vary) {
                    return false
                }
            }
            start = head.nextLine(from: start)
        }
        return true
    }

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
