internal import MartletConfig
internal import MartletCore

/// How the gateway authenticates as a client of the issuer (RFC 6749 §2.3.1).
struct ClientAuthentication: Sendable {
    /// Where the secret is sent.
    enum Method: Sendable {
        case basic(Secret)
        case post(Secret)
        /// A public client.
        case none
    }

    private static let maximumIDBytes = 255

    let id: String
    let method: Method

    /// A `client_id` of the configuration.
    static func clientID(_ reader: inout ConfigurationReader) throws(ConfigurationError) -> String {
        let id: Located<String> = try reader.required("client_id")
        guard (1...maximumIDBytes).contains(id.value.utf8.count),
            id.value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else {
            throw ConfigurationError(
                .configBadValue, at: id.location,
                "client_id: must be 1 to \(maximumIDBytes) printable ASCII characters")
        }
        return id.value
    }

    /// The fields that authenticate a form.
    var fields: [(name: String, value: String)] {
        switch method {
        case .basic: []
        case .none: [(name: "client_id", value: id)]
        case .post(let secret): [(name: "client_id", value: id), (name: "client_secret", value: secret.text)]
        }
    }

    /// The headers that authenticate a call.
    var headers: [(name: String, value: String)] {
        guard case .basic(let secret) = method else { return [] }
        // Both are form-encoded first: a colon in an id, or any other character, is not ambiguous then.
        let pair = Self.formEncoded(Array(id.utf8)) + [UInt8(ascii: ":")] + secret.withBytes { Self.formEncoded($0) }
        return [(name: "Authorization", value: "Basic \(Base64.encode(pair, padding: .required))")]
    }

    /// The encoding of `application/x-www-form-urlencoded` (WHATWG URL §5.2).
    static func formEncoded(_ bytes: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "*"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"):
                text.append(byte)
            case 0x20: text.append(UInt8(ascii: "+"))
            default: text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return text
    }
}

/// The grammar of bearer tokens (RFC 6750 §2.1).
enum BearerToken {
    static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "-._~+/=".utf8.contains(byte)
        }
    }
}

extension Secret {
    /// The secret as text, for a form; the copy is not wiped.
    var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}
