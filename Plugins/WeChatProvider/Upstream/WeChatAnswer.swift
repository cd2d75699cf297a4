private import MartletCore
internal import MartletJSON

/// A body of WeChat's, read by its content: status and media type say nothing there.
struct WeChatAnswer: Sendable {
    /// A body that is neither a success nor an error.
    struct Unreadable: Error {}

    /// What WeChat says when it refuses.
    struct Refusal: Sendable, Equatable {
        let code: Int64
        /// What WeChat's support finds the call by; for logs.
        let requestID: String?
    }

    /// More is no answer.
    static let maximumBytes = 64 * 1024
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: maximumBytes)
    private static let maximumCodeDigits = 10
    private static let maximumRequestIDBytes = 64

    private let members: JSONObject

    /// - Throws: `Unreadable` for anything but an object in which `errcode` is absent or 0.
    init(_ body: [UInt8]) throws(Unreadable) {
        // Nicknames have been seen with raw control bytes; a space in their place changes no structure.
        let clean = body.map { $0 < 0x20 ? 0x20 : $0 }
        guard let object = (try? JSON.parse(clean, limits: Self.limits))?.object, !object.isEmpty else {
            throw Unreadable()
        }
        members = object
    }

    /// The refusal, if it is one: `errcode` is there and not 0.
    func refusal() throws(Unreadable) -> Refusal? {
        guard let value = members["errcode"] else { return nil }
        guard let code = Self.code(value) else { throw Unreadable() }
        return code == 0 ? nil : Refusal(code: code, requestID: members["errmsg"]?.string.flatMap(Self.requestID))
    }

    /// A text that must be there and not be empty.
    func required(_ name: String) throws(Unreadable) -> String {
        guard let text = members[name]?.string, !text.isEmpty else { throw Unreadable() }
        return text
    }

    /// A text that may be absent, `null` or empty.
    func optional(_ name: String) throws(Unreadable) -> String? {
        switch members[name] {
        case nil, .null: return nil
        case .string(let text): return text.isEmpty ? nil : text
        default: throw Unreadable()
        }
    }

    /// Whether a mark is set: it is there and anything but 0 or `false`.
    func isMarked(_ name: String) -> Bool {
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

    /// The id behind `rid:` or `req_id:` in an error's text.
    private static func requestID(in text: String) -> String? {
        let bytes = Array(text.utf8)
        for mark in ["rid:", "req_id:"].map({ Array($0.utf8) }) where bytes.count > mark.count {
            let start = bytes.indices.dropLast(mark.count).first { bytes[$0...].starts(with: mark) }
            guard let start else { continue }
            let rest = bytes[(start + mark.count)...].drop { $0 == UInt8(ascii: " ") }
            let id = rest.prefix { isToken(CollectionOfOne($0), most: 1) }.prefix(maximumRequestIDBytes)
            return id.isEmpty ? nil : String(decoding: id, as: UTF8.self)
        }
        return nil
    }
}
