private import MartletCore
internal import MartletJSON

/// A response body of WeChat, parsed by its content: its status and media type carry no information.
struct WeChatResponse: Sendable {
    /// A body that is neither a success nor an error.
    struct ParseError: Error {}

    /// An error that WeChat returned.
    struct APIError: Sendable, Equatable {
        let code: Int64
        /// The id by which WeChat's support finds the call; for logs.
        let requestID: String?
    }

    /// A longer body is an error.
    static let maximumBytes = 64 * 1024
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: maximumBytes)
    private static let maximumCodeDigits = 10
    private static let maximumRequestIDBytes = 64

    private let members: JSONObject

    /// - Throws: `ParseError` for anything but an object in which `errcode` is absent or 0.
    init(_ body: [UInt8]) throws(ParseError) {
        // Some nicknames contain raw control bytes; replacing them with spaces does not change the structure.
        let clean = body.map { $0 < 0x20 ? 0x20 : $0 }
        let parsed = (try? JSON.parse(clean, limits: Self.limits)) ?? Self.repaired(clean)
        guard let object = parsed?.object, !object.isEmpty else { throw ParseError() }
        members = object
    }

    /// A nickname that cannot be read must not cost its user the picture, or the unionid.
    private static func repaired(_ body: [UInt8]) -> JSONValue? {
        try? JSON.parse(TextRepair.repaired(body), limits: limits)
    }

    /// The error, if `errcode` is present and not 0.
    func apiError() throws(ParseError) -> APIError? {
        guard let value = members["errcode"] else { return nil }
        guard let code = Self.code(value) else { throw ParseError() }
        return code == 0 ? nil : APIError(code: code, requestID: members["errmsg"]?.string.flatMap(Self.requestID))
    }

    /// A string that must be present and not empty.
    func required(_ name: String) throws(ParseError) -> String {
        guard let text = members[name]?.string, !text.isEmpty else { throw ParseError() }
        return text
    }

    /// A string that may be absent, `null` or empty.
    func optional(_ name: String) throws(ParseError) -> String? {
        switch members[name] {
        case nil, .null: return nil
        case .string(let text): return text.isEmpty ? nil : text
        default: throw ParseError()
        }
    }

    /// An object that must be present.
    func object(_ name: String) throws(ParseError) -> JSONObject {
        guard let object = members[name]?.object else { throw ParseError() }
        return object
    }

    /// A whole number that must be present.
    func number(_ name: String) throws(ParseError) -> Int64 {
        guard let number = members[name]?.int64 else { throw ParseError() }
        return number
    }

    /// Whether a flag is set: present and anything but 0 or `false`.
    func isSet(_ name: String) -> Bool {
        switch members[name] {
        case nil, .null, .bool(false), "0", "": false
        case .number(let number): number.text != "0"
        default: true
        }
    }

    private static func code(_ value: JSONValue) -> Int64? {
        switch value {
        case .number(let number): number.text.utf8.count <= maximumCodeDigits ? number.int64 : nil
        case .string(let text):
            text.utf8.count <= maximumCodeDigits && text.utf8.first != UInt8(ascii: "+") ? Int64(text) : nil
        default: nil
        }
    }

    /// The id after `rid:` or `req_id:` in an error's text.
    private static func requestID(in text: String) -> String? {
        let bytes = Array(text.utf8)
        for mark in ["rid:", "req_id:"].map({ Array($0.utf8) }) where bytes.count > mark.count {
            let start = bytes.indices.dropLast(mark.count).first { bytes[$0...].starts(with: mark) }
            guard let start else { continue }
            let rest = bytes[(start + mark.count)...].drop { $0 == UInt8(ascii: " ") }
            let id = rest.prefix { isToken(CollectionOfOne($0), maximum: 1) }.prefix(maximumRequestIDBytes)
            return id.isEmpty ? nil : String(decoding: id, as: UTF8.self)
        }
        return nil
    }
}
