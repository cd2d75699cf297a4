private import Glibc
private import MartletCore
public import MartletJSON

/// A signed token in compact serialization (RFC 7515 §3.1) with a claims set: parsed strictly, not yet verified.
public struct CompactJWS: Sendable {
    /// The maximum length of a token in bytes, unless another is given; most tokens have about 1 KiB, those with the
    /// groups or roles of a company more.
    public static let maximumLength = 16 * 1024

    public let header: JWSHeader
    /// The claims, not to be trusted before the signature has been verified.
    public let payload: JSONObject
    /// The signed bytes, as received.
    public let signingInput: [UInt8]
    public let signature: [UInt8]

    /// Parses a token of at most ``maximumLength`` bytes.
    public init(_ token: [UInt8], headers: JWSHeaderCache? = nil) throws(JOSEError) {
        try self.init(token, maximumLength: Self.maximumLength, headers: headers)
    }

    /// Parses a token.
    ///
    /// - Parameters:
    ///   - maximumLength: in bytes.
    ///   - headers: a cache of parsed headers; it does not affect the result.
    /// - Throws: `token_missing`, `token_too_large` before any other work, or `malformed`: not exactly three parts, a
    ///   part that is empty or not strict base64url, or a header (8 KiB, depth 4) or payload (depth 8) that is not a
    ///   strict JSON object.
    public init(
        _ token: [UInt8], maximumLength: Int, headers: JWSHeaderCache? = nil
    ) throws(JOSEError) {
        guard !token.isEmpty else { throw JOSEError(.tokenMissing, "there is no token") }
        guard token.count <= maximumLength else {
            throw JOSEError(.tokenTooLarge, "the token has \(token.count) bytes, more than \(maximumLength)")
        }
        guard let first = Self.dot(in: token, from: 0), let second = Self.dot(in: token, from: first &+ 1),
            Self.dot(in: token, from: second &+ 1) == nil
        else { throw JOSEError(.malformed, "the token does not have three parts") }
        if let headers { header = try headers.header(token[..<first]) } else { header = try JWSHeader(token[..<first]) }
        payload = try Self.object(
            token[(first &+ 1)..<second], limits: JSONLimits(maximumDepth: 8, maximumBytes: maximumLength),
            name: "payload")
        signature = try Self.bytes(token[(second &+ 1)...], name: "signature")
        signingInput = Array(token[..<second])
    }

    /// The index of the next dot.
    private static func dot(in token: [UInt8], from start: Int) -> Int? {
        unsafe token.withUnsafeBytes { bytes in
            guard start <= bytes.count, let base = bytes.baseAddress,
                let found = unsafe memchr(base + start, Int32(UInt8(ascii: ".")), bytes.count &- start)
            else { return nil }
            return unsafe UnsafeRawPointer(found) - base
        }
    }

    static func bytes(_ part: ArraySlice<UInt8>, name: String) throws(JOSEError) -> [UInt8] {
        guard !part.isEmpty, let bytes = Base64URL.decode(part) else {
            throw JOSEError(.malformed, "the \(name) is not base64url")
        }
        return bytes
    }

    static func object(
        _ part: ArraySlice<UInt8>, limits: JSONLimits, name: String
    ) throws(JOSEError) -> JSONObject {
        guard part.count / 4 &* 3 <= limits.maximumBytes else {
            throw JOSEError(.malformed, "the \(name) is too large")
        }
        let bytes = try bytes(part, name: name)
        do throws(JSONError) {
            if case .object(let object) = try JSON.parse(bytes, limits: limits) { return object }
        } catch {
            throw JOSEError(.malformed, "the \(name) is not JSON: \(error)")
        }
        throw JOSEError(.malformed, "the \(name) is not an object")
    }
}
