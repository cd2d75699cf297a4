import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider

/// One header of a route: the source and the encoding of its value.
///
/// A class, because lists of templates are iterated for every new token: a struct would retain each of its strings.
final class HeaderTemplate: Sendable {
    enum Source: Sendable {
        case attribute(PrincipalAttribute)
        case claim(ClaimPath)
        case constant(String)
    }

    /// The value before encoding.
    private enum Value {
        case absent
        case text(String)
        case list([String])
        case unsupported(ErrorCode)
    }

    /// As written in the file.
    let name: String
    private let source: Source
    private let encoding: HeaderConfiguration.Encoding
    private let join: String?
    private let fallback: String?
    /// The route's name, for `attribute: route`.
    private let route: String

    init(_ header: HeaderConfiguration, route: String) {
        name = header.name.value
        source =
            switch header.value {
            case .attribute(let attribute): .attribute(attribute)
            case .claim(let claim): .claim(claim)
            case .constant(let text): .constant(text)
            }
        encoding = header.isConstant ? .ascii : header.encoding
        join = header.join
        fallback = header.fallback
        self.route = route
    }

    /// A default header: percent-encoded, omitted without a value.
    init(_ name: String, _ source: Source) {
        self.name = name
        self.source = source
        encoding = .percent
        join = nil
        fallback = nil
        route = ""
    }

    /// Whether its value is the same for every request.
    var isConstant: Bool { if case .constant = source { true } else { false } }

    /// Appends `Name: value` and CRLF, or nothing.
    ///
    /// - Returns: the error if there is a value that could not be written; otherwise `nil`.
    func render(_ principal: Principal?, into buffer: inout ByteBuffer) -> ErrorCode? {
        let start = buffer.count
        var value = value(for: principal)
        if case .absent = value, let fallback { value = .text(fallback) }
        if case .absent = value { return nil }
        buffer.append(text: name)
        buffer.append(": ")
        let valueStart = buffer.count
        let failure = append(value, to: &buffer) ?? Self.validationError(in: buffer, from: valueStart)
        guard failure == nil else {
            buffer.truncate(to: start)
            return failure
        }
        buffer.append("\r\n")
        return nil
    }

    // MARK: Values

    private func value(for principal: Principal?) -> Value {
        switch source {
        case .attribute(.route): return .text(route)
        case .attribute(let attribute): return Self.text(of: attribute, principal).map { .text($0) } ?? .absent
        case .claim(let claim):
            guard let claims = principal?.identity.claims else { return .absent }
            return value(of: claim.value(in: claims))
        case .constant(let text): return .text(text)
        }
    }

    /// The claim of the header, if the principal has it.
    func claim(of principal: Principal) -> (name: String, value: JSONValue)? {
        let path: ClaimPath
        switch source {
        case .attribute(.email): return principal.verifiedEmail.map { ("email", .string($0)) }
        case .attribute, .constant: return nil
        case .claim(let claim): path = claim
        }
        guard let value = path.value(in: principal.identity.claims), value != .null else { return nil }
        return (([path.name] + path.members).joined(separator: "."), value)
    }

    // The optional is not unwrapped as a whole: that would copy all of it.
    private static func text(of attribute: PrincipalAttribute, _ principal: Principal?) -> String? {
        switch attribute {
        case .subject: principal?.subject
        case .provider: principal?.provider
        case .issuer: principal?.identity.issuer
        case .route: nil
        case .providerSubject: principal?.identity.providerSubject
        case .sessionID: principal?.sessionID
        case .authTime: principal?.identity.authTime.description
        case .expiresAt: principal?.identity.expiresAt.description
        case .email: principal?.verifiedEmail
        }
    }

    private func value(of claim: JSONValue?) -> Value {
        switch claim {
        case nil, .null?: return .absent
        case .some(let value) where encoding == .json: return .text(String(decoding: JSON.write(value), as: UTF8.self))
        case .object?: return .unsupported(.headerNotScalar)
        case .array(let elements)?:
            guard join != nil else { return .unsupported(.headerNotScalar) }
            let texts = elements.compactMap(Self.scalar)
            return texts.count == elements.count ? .list(texts) : .unsupported(.headerNotScalar)
        case .some(let scalar): return Self.scalar(scalar).map { .text($0) } ?? .unsupported(.headerNotScalar)
        }
    }

    /// The text of a string, boolean or number; `nil` for everything else, null included.
    private static func scalar(_ value: JSONValue) -> String? {
        switch value {
        case .string(let text): text
        case .bool(let value): value ? "true" : "false"
        case .number(let number): number.text
        case .null, .array, .object: nil
        }
    }

    // MARK: Encoding

    private func append(_ value: Value, to buffer: inout ByteBuffer) -> ErrorCode? {
        let encoder = HeaderEncoder(encoding)
        switch value {
        case .absent: return nil
        case .unsupported(let reason): return reason
        case .text(let text):
            guard text.utf8.count <= HeaderInjection.maximumValueBytes else { return .headerTooLong }
            return encoder.append(text, guarding: nil, to: &buffer)
        case .list(let texts):
            let separator = join ?? ""
            // One byte of the separator that is escaped in all elements suffices to split the value unambiguously.
            let guarded = separator.utf8.first { $0 != .space } ?? .space
            let limit = buffer.count + HeaderInjection.maximumValueBytes
            for (index, text) in texts.enumerated() {
                if index > 0 { buffer.append(text: separator) }
                guard buffer.count + text.utf8.count <= limit else { return .headerTooLong }
                if let failure = encoder.append(text, guarding: guarded, to: &buffer) { return failure }
            }
            return nil
        }
    }

    /// The final check of every encoded value: printable ASCII, no space at either end, not too long.
    private static func validationError(in buffer: borrowing ByteBuffer, from start: Int) -> ErrorCode? {
        unsafe buffer.bytes.withSpan { bytes in
            guard bytes.count > start else { return nil }
            guard bytes.count - start <= HeaderInjection.maximumValueBytes else { return .headerTooLong }
            // After subtracting 0x20, printable bytes are 0 to 0x5E and all others greater: no branch per byte.
            var greatest: UInt8 = 0
            for index in start..<bytes.count { greatest = max(greatest, bytes[index] &- 0x20) }
            guard greatest <= 0x5E else { return .headerNotPrintable }
            let hasEdge = bytes[start] == .space || bytes[bytes.count - 1] == .space
            return hasEdge ? .headerNotPrintable : nil
        }
    }

    /// Why a `default` cannot be encoded; `nil` if it can.
    func validationError(forDefault text: String) -> String? {
        if encoding == .json, !Self.isJSON(text) { return "is not JSON" }
        var buffer = ByteBuffer()
        guard let failure = append(.text(text), to: &buffer) ?? Self.validationError(in: buffer, from: 0) else {
            return nil
        }
        return "cannot be encoded as \(encoding.rawValue) (\(failure))"
    }

    /// A default stands where readers expect the encoding.
    private static func isJSON(_ text: String) -> Bool {
        (try? JSON.parse(Array(text.utf8), limits: JSONLimits(maximumDepth: 8, maximumBytes: text.utf8.count))) != nil
    }
}

extension Principal {
    /// The address that is proved to be the caller's: that of the credential or the session, if its provider says so.
    ///
    /// The one place that decides it, for headers and for the assertion.
    var verifiedEmail: String? {
        guard case .bool(true)? = identity.claims["email_verified"],
            case .string(let address)? = identity.claims["email"]
        else { return nil }
        return address
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Provides the bytes as a span.
    @unsafe fileprivate func withSpan<Result>(_ body: (Span<UInt8>) -> Result) -> Result {
        body(unsafe Span(_unsafeElements: self))
    }
}
